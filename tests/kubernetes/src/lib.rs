//! Parts of the tests with a released Kubernetes: its control plane as local processes (etcd, the
//! API server and, if a test needs them, the controller manager and the scheduler), a node in
//! namespaces, and the executed pages of docs/.
//!
//! `./justw test-kubernetes` builds the programs and passes their folder in `KUBERNETES_TOOLS`.

mod cluster;
mod components;
mod credentials;
pub mod doc_test;
pub mod helm;
mod kubectl;
pub mod node;
mod options;
mod process;

use std::path::{Path, PathBuf};

pub use cluster::Cluster;
pub use options::Options;
pub use process::{Process, command};

use kit::envoy::workspace;

/// Returns the path of a program of Kubernetes.
///
/// # Panics
/// If it is missing, because a test without it must not pass.
pub fn tool(name: &str) -> PathBuf {
    let named = std::env::vars_os().find(|(name, _)| name == "KUBERNETES_TOOLS");
    let (_, folder) = named.expect(
        "KUBERNETES_TOOLS is not set to the folder with etcd, kube-apiserver, …: run ./justw test-kubernetes",
    );
    let tool = Path::new(&folder).join(name);
    assert!(tool.is_file(), "{} is missing: run ./justw test-kubernetes", tool.display());
    tool
}

/// Returns the path of a file or folder of the shipped manifests.
pub fn manifests(name: &str) -> PathBuf {
    workspace().join("envoy-config/kubernetes").join(name)
}
