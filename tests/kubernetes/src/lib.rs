//! A released Kubernetes as processes, a node in namespaces, and the executed pages of docs/.

pub mod guide;
pub mod kubernetes;
pub mod node;
