//! Decides which ports get a listener, and to which clusters it forwards.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::objects::{Protocol, Service};
use crate::wire::HostSpec;

/// Ports of Envoy, the agent and discovery on a machine, as in Istio.
const RESERVED: RangeInclusive<u16> = 15000..=15100;

/// A host and port of a service, as a client sees it.
#[derive(Clone, Copy, Debug)]
pub(in crate::snapshot) struct Upstream<'a> {
    pub(in crate::snapshot) service: &'a Service,
    pub(in crate::snapshot) host: &'a str,
    pub(in crate::snapshot) port: u16,
    pub(in crate::snapshot) protocol: Protocol,
    /// Name of its cluster.
    pub(in crate::snapshot) cluster: &'a str,
}

/// The clusters that a listener forwards to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Forwarding<'a> {
    /// Each request, to the cluster of its host.
    Http(Vec<HostSpec<'a>>),
    /// Each connection, to the cluster with this name.
    Tcp(&'a str),
}

/// The listeners by port number.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub(super) ports: BTreeMap<u16, Forwarding<'a>>,
    /// A sentence for each port of a service that has no listener or route.
    pub(super) conflicts: BTreeSet<String>,
}

impl<'a> Plan<'a> {
    /// Plans the listeners of a client in the namespace `own`. If services cannot share a port, those
    /// of `own` take precedence, and then the oldest.
    pub(super) fn new(own: Option<&str>, mut upstreams: Vec<Upstream<'a>>) -> Self {
        let is_other = |it: &Upstream| own != Some(it.service.key.namespace.as_str());
        upstreams.sort_by(|one, other| {
            let order = |it: &Upstream<'a>| (it.port, is_other(it), it.service.precedence());
            order(one).cmp(&order(other))
        });
        let mut plan = Self::default();
        for upstreams in upstreams.chunk_by(|one, other| one.port == other.port) {
            plan.add_port(upstreams);
        }
        plan
    }

    /// Adds the listener of a port; `upstreams` are sorted by precedence.
    fn add_port(&mut self, upstreams: &[Upstream<'a>]) {
        let Some(first) = upstreams.first() else { return };
        let is_reserved = RESERVED.contains(&first.port);
        let mut hosts: BTreeMap<String, &Upstream> = BTreeMap::new();
        for upstream in upstreams {
            let is_http = upstream.protocol.is_http();
            // Envoy compares hosts without case, and rejects routes in which one appears twice.
            let host = upstream.host.to_ascii_lowercase();
            let reason = if is_reserved {
                let (from, to) = (RESERVED.start(), RESERVED.end());
                format!("ports {from} to {to} are those of Envoy and the agent")
            } else if is_http != first.protocol.is_http()
                || !is_http && upstream.service.key != first.service.key
            {
                let protocol = first.protocol.name();
                format!("it is the port of ServiceEntry {} with protocol {protocol}", first.service.key)
            } else if let Some(other) = hosts.get(&host) {
                format!("ServiceEntry {} has the host {:?}", other.service.key, other.host)
            } else {
                hosts.insert(host, upstream);
                continue;
            };
            let Upstream { service: Service { key, .. }, host, port, protocol, .. } = upstream;
            let protocol = protocol.name();
            self.conflicts.insert(format!(
                "ServiceEntry {key}: {host:?} port {port} with protocol {protocol} has no outbound listener: {reason}"
            ));
        }
        if is_reserved {
            return;
        }
        let forwarding = if first.protocol.is_http() {
            let host = |it: &&Upstream<'a>| HostSpec { host: it.host, port: it.port, cluster: it.cluster };
            Forwarding::Http(hosts.values().map(host).collect())
        } else {
            Forwarding::Tcp(first.cluster)
        };
        self.ports.insert(first.port, forwarding);
    }
}

#[cfg(test)]
mod tests;
