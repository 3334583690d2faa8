//! The sidecar of a Pod: a real Envoy with the filter, and the bootstrap that the agent renders.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use address::LocalAddress;
use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use envoy_bootstrap::envoy_version::EnvoyVersion;
use serde_json::Value;

use crate::caller::{self, Answer};
use crate::envoy::{self, Envoy, Version};

/// `timeoutSeconds` of probes whose result must not depend on the speed of the machine.
const TIMEOUT_SECONDS: u64 = 60;

/// The source address of the filter's probes, which is exempt from traffic capture.
pub const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 6));

/// An Envoy that answers the probes of one Pod.
pub struct Pod {
    /// The address of the Pod, on which applications and Envoy listen.
    pub ip: IpAddr,
    /// The address of the probe listener.
    pub listener: SocketAddr,
    pub envoy: Envoy,
}

impl Pod {
    /// Starts Envoy at `ip` with this prober table, in which a probe without `timeoutSeconds` gets
    /// [`with_long_timeouts`]; `name` is that of the test.
    pub async fn start(name: &str, ip: IpAddr, probers: &Value) -> Self {
        let probers = with_long_timeouts(probers.clone());
        Self::with(name, Version::Newest, &Self::bootstrap(name, ip, &probers)).await
    }

    /// Returns the bootstrap of a Pod, so that a test can change it.
    pub fn bootstrap(name: &str, ip: IpAddr, probers: &Value) -> Bootstrap {
        let folder = envoy::folder(name);
        Bootstrap {
            probe_address: envoy::probe_listener(ip),
            stats_address: Some(SocketAddr::new(ip, 15090)),
            local_address: LocalAddress::Tcp(SocketAddr::new(ip, 15004)),
            admin: LocalAddress::Unix(folder.join("admin.sock")),
            filter: Some(filter()),
            allow_from: Vec::new(),
            node: Vec::new(),
            hook_callers: None,
            reserved_ports: Vec::new(),
            reuse_connections: false,
            sources: if ip.is_ipv4() { vec![SOURCE] } else { Vec::new() },
            instance_ip: ip,
            envoy_version: EnvoyVersion::NEWEST,
            app_probers: Some(probers.to_string()),
            xds: None,
        }
    }

    /// Starts an Envoy of this version with a changed bootstrap.
    pub async fn with(name: &str, version: Version, bootstrap: &Bootstrap) -> Self {
        let bootstrap = Bootstrap { envoy_version: version.bootstrap(), ..bootstrap.clone() };
        let rendered = serde_json::from_str(&bootstrap.render()).expect("a bootstrap is JSON");
        let envoy = Envoy::start(version, envoy::folder(name), &rendered, 1).await;
        Self { ip: bootstrap.instance_ip, listener: bootstrap.probe_address, envoy }
    }

    /// Probes `/app-health/<container>/readyz`.
    pub async fn probe(&self, container: &str) -> Answer {
        caller::probe(self.listener, &format!("/app-health/{container}/readyz")).await
    }
}

/// Sets a timeout of a minute for each probe that has no `timeoutSeconds`, in place of the second
/// that is Kubernetes' default, so that a busy machine does not change its result. Lifecycle hooks
/// have no timeout and stay as they are.
pub fn with_long_timeouts(mut probers: Value) -> Value {
    let probers_by_path = probers.as_object_mut().expect("a prober table is an object");
    for (path, prober) in probers_by_path {
        if path.starts_with("/app-health/") && prober["timeoutSeconds"].is_null() {
            prober["timeoutSeconds"] = TIMEOUT_SECONDS.into();
        }
    }
    probers
}

/// Selects what answers probes in tests: `wasm`, which is the default, `native`, `agent`, or `pilot-agent`.
const FORM: &str = "APP_HEALTH_TEST_FILTER";

/// What answers probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The filter as a WebAssembly module in Envoy.
    Wasm,
    /// The filter as a dynamic module of Envoy.
    Native,
    /// The agent.
    Agent,
    /// Istio's agent.
    PilotAgent,
}

impl Form {
    /// Returns whether the filter in Envoy answers, and no agent.
    pub fn is_filter(self) -> bool {
        matches!(self, Self::Wasm | Self::Native)
    }
}

/// Returns the form that the environment selects.
///
/// # Panics
/// If there is no such form.
pub fn form() -> Form {
    match std::env::var_os(FORM) {
        None => Form::Wasm,
        Some(form) if form == "wasm" => Form::Wasm,
        Some(form) if form == "native" => Form::Native,
        Some(form) if form == "agent" => Form::Agent,
        Some(form) if form == "pilot-agent" => Form::PilotAgent,
        Some(form) => panic!("{FORM} = {form:?}: must be wasm, native, agent or pilot-agent"),
    }
}

/// Returns the filter in the form that the environment selects.
///
/// # Panics
/// If there is no such form, or the filter is missing.
pub fn filter() -> FilterCode {
    match form() {
        Form::Wasm => FilterCode::File(wasm()),
        Form::Native => FilterCode::Module(module()),
        Form::Agent | Form::PilotAgent => panic!("{FORM} selects an agent: Envoy has no filter"),
    }
}

/// Returns true if the environment selects the native form of the filter.
///
/// # Panics
/// If there is no such form.
pub fn is_native() -> bool {
    form() == Form::Native
}

/// Returns the checkout with the filter.
fn checkout() -> PathBuf {
    envoy::other_checkout().unwrap_or_else(envoy::workspace)
}

/// Returns the path of the filter as a dynamic module.
///
/// # Panics
/// If it is missing.
pub fn module() -> PathBuf {
    let file = checkout().join("target/release/libapp_health_filter_native.so");
    assert!(file.is_file(), "{} is missing: run ./justw module", file.display());
    file
}

/// Returns the path of the shipped wasm filter.
///
/// # Panics
/// If it is missing or older than its sources.
pub fn wasm() -> PathBuf {
    let file = checkout().join("target/wasm32-unknown-unknown/wasm/app_health_filter.wasm");
    assert!(file.is_file(), "{} is missing: run ./justw wasm", file.display());
    file
}
