//! The listeners and route configurations for outbound requests, encoded once for the clients of
//! each namespace. They depend on hosts and ports of services only, not on endpoints.

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::hash;
use crate::message::{Resource, Version};
use crate::wire;

pub(super) use plan::Upstream;
use plan::{Forwarding, Plan};

#[derive(Debug)]
pub(super) struct Outbound {
    /// The resources for clients of all other namespaces.
    shared: OutboundResources,
    /// The resources for clients of each namespace that sees other services than `shared` contains.
    namespaces: BTreeMap<String, OutboundResources>,
    conflicts: BTreeSet<String>,
}

/// Encoded listeners and route configurations by name.
#[derive(Debug, Default)]
pub(super) struct OutboundResources {
    pub(super) listeners: BTreeMap<Arc<str>, Arc<Resource>>,
    pub(super) routes: BTreeMap<Arc<str>, Arc<Resource>>,
}

impl Outbound {
    /// Builds the resources of each of these namespaces, and those of all others. `upstreams`
    /// returns what clients of a namespace see; `None` is any other namespace.
    pub(super) fn new<'a>(
        address: IpAddr,
        namespaces: BTreeSet<String>,
        upstreams: impl Fn(Option<&str>) -> Vec<Upstream<'a>>,
    ) -> Self {
        let plan = Plan::new(None, upstreams(None));
        let shared = OutboundResources::new(address, &plan, &OutboundResources::default());
        let mut conflicts = plan.conflicts;
        let of_namespace = |namespace: String| {
            let plan = Plan::new(Some(&namespace), upstreams(Some(&namespace)));
            let resources = OutboundResources::new(address, &plan, &shared);
            conflicts.extend(plan.conflicts);
            (namespace, resources)
        };
        let namespaces = namespaces.into_iter().map(of_namespace).collect();
        Self { shared, namespaces, conflicts }
    }

    /// Returns what clients of this namespace receive.
    pub(super) fn of(&self, namespace: Option<&str>) -> &OutboundResources {
        namespace.and_then(|namespace| self.namespaces.get(namespace)).unwrap_or(&self.shared)
    }

    /// Returns the names of all resources, some of them more than once.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let all = std::iter::once(&self.shared).chain(self.namespaces.values());
        all.flat_map(|resources| resources.listeners.keys().chain(resources.routes.keys()))
    }

    /// Returns a sentence for each port of a service that has no listener or route, sorted.
    pub(super) fn conflicts(&self) -> &BTreeSet<String> {
        &self.conflicts
    }
}

impl OutboundResources {
    /// Encodes a plan. Resources that equal those of `shared` are not stored again.
    fn new(address: IpAddr, plan: &Plan, shared: &Self) -> Self {
        let mut resources = Self::default();
        for (port, forwarding) in &plan.ports {
            // These are Istio's names.
            let (listener, route) = (format!("{address}_{port}"), port.to_string());
            let any = match forwarding {
                Forwarding::Http(hosts) => {
                    add(&mut resources.routes, &route, wire::route(&route, hosts), &shared.routes);
                    wire::http_listener(&listener, (address, *port), &route)
                }
                Forwarding::Tcp(cluster) => wire::tcp_listener(&listener, (address, *port), cluster),
            };
            add(&mut resources.listeners, &listener, any, &shared.listeners);
        }
        resources
    }
}

fn add(
    resources: &mut BTreeMap<Arc<str>, Arc<Resource>>,
    name: &str,
    any: Bytes,
    shared: &BTreeMap<Arc<str>, Arc<Resource>>,
) {
    let resource = match shared.get(name) {
        Some(shared) if shared.any == any => shared.clone(),
        _ => {
            let version = Version { hash: hash([any.as_ref()]), endpoints: None };
            Arc::new(Resource { name: name.into(), version, any })
        }
    };
    resources.insert(resource.name.clone(), resource);
}

#[cfg(test)]
mod tests;
