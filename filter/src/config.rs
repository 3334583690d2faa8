//! The filter's configuration: the checked plugin configuration, with a plan for each prober.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use probe::{Clusters, ConfigError, OwnPorts, PluginConfig};

use crate::ledger::Entry;
use crate::plan::Plan;

/// Everything that a request is decided by. One value, replaced as a whole.
#[derive(Debug)]
pub struct Config {
    /// The pod's address as it stands in a URL's hostname: without brackets.
    pub pod_ip: String,
    /// The same as it stands in an authority: with brackets for IPv6.
    pub pod_host: String,
    /// Ports that a redirect must not reach.
    pub own_ports: OwnPorts,
    /// Where callouts go.
    pub clusters: Clusters,
    /// What was accepted and ignored, a line each.
    pub warnings: Vec<String>,
    probes: BTreeMap<Vec<u8>, Rc<Probe>>,
}

/// A declared probe: what to do, and what came of it.
#[derive(Debug)]
pub struct Probe {
    /// Ready-made from the table.
    pub plan: Plan,
    /// What metrics and logs know of it.
    pub entry: Entry,
}

impl Config {
    /// Reads the plugin configuration; refused as a whole.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let PluginConfig { pod_ip, own_ports, clusters, probers, warnings } = PluginConfig::parse(bytes)?;
        let pod_ip_text = pod_ip.map(|ip| ip.to_string()).unwrap_or_default();
        let pod_host = match pod_ip {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => pod_ip_text.clone(),
        };
        let probes = probers
            .iter()
            .map(|(path, prober)| {
                let plan = Plan::new(path, prober, &pod_host);
                (path.to_string().into_bytes(), Rc::new(Probe { plan, entry: Entry::default() }))
            })
            .collect();
        Ok(Self { pod_ip: pod_ip_text, pod_host, own_ports, clusters, warnings, probes })
    }

    /// Every declared probe.
    pub fn probes(&self) -> impl Iterator<Item = &Rc<Probe>> {
        self.probes.values()
    }

    /// The probe that is declared for exactly this path.
    pub fn probe(&self, path: &[u8]) -> Option<&Rc<Probe>> {
        self.probes.get(path)
    }
}

#[cfg(test)]
mod tests;
