//! The filter's configuration: the validated plugin configuration, and a plan for each prober.

use std::net::IpAddr;
use std::rc::Rc;

use probe::{Clusters, ConfigError, Connection, HookCallers, PluginConfig, ProxyPorts};

use crate::permits::Permits;
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
    hook_callers: HookCallers,
    /// One line for each setting that was accepted but ignored.
    pub warnings: Vec<String>,
    /// The probes and their paths, in the order of the paths.
    probes: Vec<(Vec<u8>, Rc<DeclaredProbe>)>,
}

/// A declared probe with its prepared requests and its state.
#[derive(Debug)]
pub struct DeclaredProbe {
    pub plan: ProberPlan,
    /// The counters and the last result of this probe.
    pub stats: ProberStats,
    /// Limits the probes in flight.
    pub permits: Rc<Permits>,
}

impl Config {
    /// Parses and validates the plugin configuration. An invalid part rejects all of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let PluginConfig {
            pod_ip,
            proxy_ports,
            clusters,
            hook_callers,
            reuse_connections,
            probers,
            warnings,
        } = PluginConfig::parse(bytes)?;
        let connection = if reuse_connections { Connection::KeepAlive } else { Connection::Close };
        let pod_ip_text = pod_ip.map(|ip| ip.to_string()).unwrap_or_default();
        let pod_host = match pod_ip {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => pod_ip_text.clone(),
        };
        let mut probes: Vec<_> = probers
            .iter()
            .map(|(path, prober)| {
                let plan = ProberPlan::new(path, prober, &pod_host, connection);
                let probe = DeclaredProbe { plan, stats: ProberStats::default(), permits: Rc::default() };
                (path.to_string().into_bytes(), Rc::new(probe))
            })
            .collect();
        probes.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Self { pod_ip: pod_ip_text, pod_host, proxy_ports, clusters, hook_callers, warnings, probes })
    }

    pub fn probes(&self) -> impl Iterator<Item = &Rc<DeclaredProbe>> {
        self.probes.iter().map(|(_, probe)| probe)
    }

    /// Returns true if a client, `address:port`, may call lifecycle hooks.
    pub fn may_call_hooks(&self, client: &[u8]) -> bool {
        let address = without_port(client);
        let address = address.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(address);
        self.hook_callers.allow(std::str::from_utf8(address).ok().and_then(|address| address.parse().ok()))
    }

    /// Returns the probe that is declared for exactly this path.
    pub fn probe(&self, path: &[u8]) -> Option<&Rc<DeclaredProbe>> {
        let place = self.probes.binary_search_by(|(found, _)| found.as_slice().cmp(path)).ok()?;
        self.probes.get(place).map(|(_, probe)| probe)
    }
}

/// Returns the address of `address:port`; for IPv6 with its brackets.
pub fn without_port(client: &[u8]) -> &[u8] {
    client.rsplitn(2, |byte| *byte == b':').nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests;
