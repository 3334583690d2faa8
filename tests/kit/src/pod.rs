//! What stands in a Pod: a real Envoy with the filter, by the bootstrap that the agent renders.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use app_health_agent::address::LocalAddress;
use app_health_agent::bootstrap::{Bootstrap, FilterCode};
use app_health_agent::envoy_version::EnvoyVersion;
use serde_json::Value;

use crate::caller::{self, Answer};
use crate::envoy::{self, Envoy, Version};

/// The address that probes come from, so that captured traffic lets them through.
pub const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 6));

/// An Envoy that answers the probes of one pod.
pub struct Pod {
    /// The pod's address: applications listen there, and so does Envoy.
    pub ip: IpAddr,
    /// Where kubelet asks.
    pub listener: SocketAddr,
    /// The proxy.
    pub envoy: Envoy,
}

impl Pod {
    /// Starts Envoy at `ip` with this prober table. `name` is the test's.
    pub async fn start(name: &str, ip: IpAddr, probers: &Value) -> Self {
        Self::with(name, Version::Newest, &Self::bootstrap(name, ip, probers)).await
    }

    /// The bootstrap of a Pod, to be changed before it is used.
    pub fn bootstrap(name: &str, ip: IpAddr, probers: &Value) -> Bootstrap {
        let folder = envoy::folder(name);
        Bootstrap {
            probe_address: envoy::probe_listener(ip),
            stats_address: Some(SocketAddr::new(ip, 15090)),
            local_address: LocalAddress::Tcp(SocketAddr::new(ip, 15004)),
            admin: LocalAddress::Unix(folder.join("admin.sock")),
            filter: FilterCode::File(wasm()),
            allow_from: Vec::new(),
            reserved_ports: Vec::new(),
            sources: if ip.is_ipv4() { vec![SOURCE] } else { Vec::new() },
            instance_ip: ip,
            envoy_version: EnvoyVersion::NEWEST,
            app_probers: Some(probers.to_string()),
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

/// The filter as it is shipped. The agent's build script has refused one that is older than its sources.
///
/// # Panics
/// If the file is missing.
pub fn wasm() -> PathBuf {
    let file = envoy::workspace().join("target/wasm32-unknown-unknown/wasm/app_health_filter.wasm");
    assert!(file.is_file(), "{} is missing: run ./justw wasm", file.display());
    file
}
