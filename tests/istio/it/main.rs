//! Tests with the programs of a real Istio: our agent and Envoys with istiod, and Istio's agent with
//! our discovery. They are ignored by default; `./justw test-istio` runs them.

mod agent_with_istiod;
mod bootstraps;
mod dns;
mod istiod;
mod mutual_tls;
mod pilot_agent;
mod pilot_agent_with_discovery;
mod pod_sidecar;
mod proxied_machine;
mod proxy_with_istiod;
mod sidecar_with_istiod;

use std::path::PathBuf;

use kit::envoy::workspace;

/// Returns the path of a program or file of Istio.
///
/// # Panics
/// If it is missing, because a test without it must not pass.
fn istio(name: &str) -> PathBuf {
    let path = workspace().join("target/istio").join(name);
    assert!(path.is_file(), "{} is missing: run ./justw test-istio", path.display());
    path
}
