//! The filter's configuration: the validated plugin configuration, and a plan for each prober.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use probe::{Clusters, ConfigError, PluginConfig, ProxyPorts};

use crate::prober_plan::ProberPlan;
use crate::stats::ProberStats;

/// The configuration of one root context. A new configuration replaces it as a whole.
#[derive(Debug)]
pub struct Config {
    /// The Pod's IP address as in a URL's hostname, without brackets for IPv6; empty if not
    /// configured.
    pub pod_ip: String,
    /// The Pod's IP address as in a URL's authority, with brackets for IPv6.
    pub pod_host: String,
    /// The sidecar's own ports, which a redirect must not reach.
    pub proxy_ports: ProxyPorts,
    /// The clusters of the callouts.
    pub clusters: Clusters,
    /// One line for each setting that was accepted but ignored.
    pub warnings: Vec<String>,
    probes: BTreeMap<Vec<u8>, Rc<DeclaredProbe>>,
}

/// A declared probe with its prepared requests and its state.
#[derive(Debug)]
pub struct DeclaredProbe {
    pub plan: ProberPlan,
    /// The counters and the last result of this probe.
    pub stats: ProberStats,
}

impl Config {
    /// Parses and validates the plugin configuration. An invalid part rejects all of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let PluginConfig { pod_ip, proxy_ports, clusters, probers, warnings } = PluginConfig::parse(bytes)?;
        let pod_ip_text = pod_ip.map(|ip| ip.to_string()).unwrap_or_default();
        let pod_host = match pod_ip {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => pod_ip_text.clone(),
        };
        let probes = probers
            .iter()
            .map(|(path, prober)| {
                let plan = ProberPlan::new(path, prober, &pod_host);
                (
                    path.to_string().into_bytes(),
                    Rc::new(DeclaredProbe { plan, stats: ProberStats::default() }),
                )
            })
            .collect();
        Ok(Self { pod_ip: pod_ip_text, pod_host, proxy_ports, clusters, warnings, probes })
    }

    pub fn probes(&self) -> impl Iterator<Item = &Rc<DeclaredProbe>> {
        self.probes.values()
    }

    /// Returns the probe that is declared for exactly this path.
    pub fn probe(&self, path: &[u8]) -> Option<&Rc<DeclaredProbe>> {
        self.probes.get(path)
    }
}

#[cfg(test)]
mod tests;
