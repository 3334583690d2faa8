//! Istio's own programs, and our agent in the place of Istio's, for tests and benchmarks.

pub mod istiod;
pub mod pod_sidecar;
pub mod program;
pub mod secret_client;

use std::path::PathBuf;

use kit::envoy::workspace;

/// Returns the path of a program or file of Istio.
///
/// # Panics
/// If it is missing, because a test without it must not pass.
pub fn istio(name: &str) -> PathBuf {
    let path = workspace().join("target/istio").join(name);
    assert!(path.exists(), "{} is missing: run ./justw test-istio", path.display());
    path
}
