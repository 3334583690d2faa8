//! Probes the workload of a virtual machine, as kubelet probes a Pod.

pub mod health;

pub use health::*;
