//! The control plane of a released Kubernetes, as processes of this machine: etcd, the API server and, where a test wants them, the
//! controller manager and the scheduler.
//!
//! `./justw test-kubernetes` builds the programs and says by `KUBERNETES_TOOLS` where they are.

mod cluster;
mod credentials;
mod kubectl;
mod options;
mod parts;
mod process;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

pub use cluster::Cluster;
pub use options::Options;
pub use process::{Process, command};

use kit::envoy::workspace;

/// A port of loopback, in the network of this thread, that nobody listens on.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// A program of Kubernetes.
///
/// # Panics
/// When it is missing: a test without it has not passed.
pub fn tool(name: &str) -> PathBuf {
    let named = std::env::vars_os().find(|(name, _)| name == "KUBERNETES_TOOLS");
    let (_, folder) = named
        .expect("KUBERNETES_TOOLS names the folder with etcd, kube-apiserver, …: ./justw test-kubernetes");
    let tool = Path::new(&folder).join(name);
    assert!(tool.is_file(), "{} is missing: ./justw test-kubernetes", tool.display());
    tool
}

/// A file or folder of the shipped manifests.
pub fn manifests(name: &str) -> PathBuf {
    workspace().join("envoy-config/kubernetes").join(name)
}
