//! Builds the clusters, assignments, listeners and routes that Envoys are served from configuration
//! and entries.
//!
//! A snapshot is immutable and shared by all streams. Each resource is encoded once; unchanged
//! resources are taken from the previous snapshot. Which stream has received what is tracked in
//! `stream`.

mod changes;
mod endpoints;
mod namespace;
mod outbound;
mod removal_limits;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::entries::{Preserved, RemovalLimits, Timestamp, Workload};
use crate::message::{Resource, Version};
use crate::objects::{Config, ExportTo, Key, LastEndpoint, Port, Protocol, Service};
use crate::wire::{self, ClusterSpec};

use changes::Changes;
pub use changes::SnapshotId;
pub use endpoints::Assignment;
use endpoints::{Assignments, Members, State};
use namespace::Namespaces;
use outbound::{Outbound, Upstream};

/// Settings from flags, and the state of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// Policy for services without the annotation `app-health.io/last-endpoint`.
    pub last_endpoint: LastEndpoint,
    /// True if the store was empty or lost at the start and agents may still reconnect. Until then,
    /// a client that has more endpoints of an assignment than the server knows gets no response for
    /// it.
    pub startup_grace: bool,
    /// Address of the listeners for outbound requests; `None` if there are none.
    pub outbound_listeners: Option<IpAddr>,
    pub removal_limits: RemovalLimits,
    /// The time of [`Entries::steady_time`](crate::entries::Entries::steady_time).
    pub now: Timestamp,
}

/// The client that a snapshot is viewed as; namespace and network decide what it sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Viewer {
    /// From the client certificate, or else from the node metadata.
    pub namespace: Option<String>,
    /// A client without a network sees the endpoints of all networks.
    pub network: Option<String>,
}

/// The resources of all clients.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Clusters by name. Services of several namespaces may have the same host; the oldest is the first.
    clusters: BTreeMap<Arc<str>, Vec<Arc<Cluster>>>,
    /// The same clusters by service, to reuse them in the next snapshot.
    services: BTreeMap<Key, Arc<BuiltService>>,
    preserved: BTreeMap<Key, Preserved>,
    /// The services in self-preservation.
    self_preserving_services: BTreeSet<Key>,
    /// A sentence for each exported host and port that another namespace exports too.
    export_conflicts: BTreeSet<String>,
    /// Listeners and routes, if they are served.
    outbound: Option<Arc<Outbound>>,
    startup_grace: bool,
    changes: Changes,
}

/// One service, with the state that its clusters were built from.
#[derive(Debug)]
struct BuiltService {
    service: Arc<Service>,
    states: Vec<State>,
    clusters: Vec<Arc<Cluster>>,
}

/// The cluster and the assignments of one host and port.
#[derive(Debug)]
struct Cluster {
    namespace: String,
    export_to: ExportTo,
    resource: Arc<Resource>,
    assignments: Assignments,
}

impl Snapshot {
    /// Builds a snapshot. What has not changed is taken from `previous`.
    pub fn build(
        config: &Config,
        workloads: &mut dyn Iterator<Item = Workload>,
        settings: SnapshotSettings,
        previous: Option<&Self>,
    ) -> Self {
        let namespaces = Namespaces::new(workloads);
        let mut snapshot = Self { startup_grace: settings.startup_grace, ..Self::default() };
        let mut changed = BTreeSet::new();
        let mut services: Vec<_> = config.services.values().collect();
        services.sort_by(|one, other| one.precedence().cmp(&other.precedence()));
        for service in services {
            let last_endpoint = service.last_endpoint.unwrap_or(settings.last_endpoint);
            let preserved_before = |key: &Key| {
                previous
                    .and_then(|previous| previous.preserved.get(key))
                    .is_some_and(|preserved| preserved.is_self_preserved())
            };
            let preserve =
                |machines| settings.removal_limits.preserved(machines, &preserved_before, settings.now);
            let members = Members::of(service, &namespaces, last_endpoint, preserve);
            let before = previous.and_then(|previous| previous.services.get(&service.key));
            let served = match before {
                Some(before) if before.is_same(service, &members) => before.clone(),
                before => {
                    let built = BuiltService::new(service, &members, before.map(AsRef::as_ref));
                    changed.extend(before.into_iter().flat_map(|before| before.names()));
                    changed.extend(built.names());
                    Arc::new(built)
                }
            };
            for (key, preserved) in members.preserved() {
                if preserved.is_self_preserved() {
                    snapshot.self_preserving_services.insert(service.key.clone());
                }
                // What keeps it in one service keeps the entry.
                snapshot
                    .preserved
                    .entry(key.clone())
                    .and_modify(|of| *of = preserved.min(*of))
                    .or_insert(preserved);
            }
            snapshot.add(served);
        }
        if let Some(address) = settings.outbound_listeners {
            snapshot.outbound = Some(snapshot.outbound(address, previous, &mut changed));
        }
        if let Some(previous) = previous {
            let services = &snapshot.services;
            let deleted = previous.services.iter().filter(|(key, _)| !services.contains_key(*key));
            changed.extend(deleted.flat_map(|(_, service)| service.names()));
            snapshot.changes = Changes::after(&previous.changes, changed);
        }
        snapshot
    }

    /// Adds the clusters of a service. Services come in the order of their precedence. Within a
    /// namespace, the first one with a host and port has it, and among all exported ones the first is
    /// what other namespaces see.
    fn add(&mut self, served: Arc<BuiltService>) {
        for (cluster, upstream) in
            served.clusters.iter().zip(served.upstreams().map(|(_, upstream)| upstream))
        {
            let others = self.clusters.entry(cluster.resource.name.clone()).or_default();
            if others.iter().any(|other| other.namespace == cluster.namespace) {
                continue;
            }
            let exported = others.iter().find(|other| other.export_to == ExportTo::All);
            if let Some(first) = exported.filter(|_| cluster.export_to == ExportTo::All) {
                self.export_conflicts.insert(format!(
                    "ServiceEntry {}: {:?} port {} is exported by namespace {:?} already, which other namespaces get",
                    served.service.key, upstream.host, upstream.port, first.namespace
                ));
            }
            others.push(cluster.clone());
        }
        self.services.insert(served.service.key.clone(), served);
    }

    /// Returns the listeners and routes of these services: those of `previous` if its services are
    /// the same, since they do not depend on endpoints. Otherwise adds the names of all to `changed`.
    fn outbound(
        &self,
        address: IpAddr,
        previous: Option<&Self>,
        changed: &mut BTreeSet<Arc<str>>,
    ) -> Arc<Outbound> {
        let before = previous.and_then(|previous| Some((previous, previous.outbound.as_ref()?)));
        if let Some((previous, outbound)) = before {
            let [before, now] = [previous, self].map(|it| it.services.values().map(|built| &built.service));
            if before.eq(now) {
                return outbound.clone();
            }
            changed.extend(outbound.names().cloned());
        }
        // A namespace needs separate resources only if it sees other clusters than all others do.
        let own = self.clusters.values().flat_map(|clusters| {
            let shared = visible_cluster(clusters, &Viewer::default());
            let is_shared = move |own: &Cluster| shared.is_some_and(|shared| std::ptr::eq(own, shared));
            clusters.iter().filter(move |own| !is_shared(own)).map(|own| own.namespace.clone())
        });
        let outbound = Outbound::new(address, own.collect(), |namespace| self.upstreams(namespace));
        changed.extend(outbound.names().cloned());
        Arc::new(outbound)
    }

    /// Returns the hosts and ports that clients of a namespace see, sorted by service; `None` is a
    /// namespace that has no services.
    fn upstreams(&self, namespace: Option<&str>) -> Vec<Upstream<'_>> {
        let viewer = Viewer { namespace: namespace.map(str::to_owned), network: None };
        let clusters = self.services.values().flat_map(|built| built.upstreams());
        let is_visible = |cluster: &Cluster| {
            let same_name = self.clusters.get(&cluster.resource.name);
            same_name
                .and_then(|same| visible_cluster(same, &viewer))
                .is_some_and(|it| std::ptr::eq(it, cluster))
        };
        clusters.filter(|(cluster, _)| is_visible(cluster)).map(|(_, upstream)| upstream).collect()
    }

    pub fn id(&self) -> &SnapshotId {
        self.changes.id()
    }

    /// Returns the names whose clusters or assignments may differ from those of an earlier snapshot,
    /// or `None` if that is not known.
    pub fn changed_since(&self, id: &SnapshotId) -> Option<impl Iterator<Item = &Arc<str>>> {
        self.changes.since(id)
    }

    /// Returns the clusters visible to `viewer`, sorted by name.
    pub fn clusters<'a>(&'a self, viewer: &'a Viewer) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.clusters.values().filter_map(|clusters| Some(&visible_cluster(clusters, viewer)?.resource))
    }

    /// Returns the cluster with this name if `viewer` can see it.
    pub fn cluster(&self, viewer: &Viewer, name: &str) -> Option<&Arc<Resource>> {
        Some(&visible_cluster(self.clusters.get(name)?, viewer)?.resource)
    }

    /// Returns the assignments visible to `viewer`, sorted by name.
    pub fn assignments<'a>(&'a self, viewer: &'a Viewer) -> impl Iterator<Item = &'a Assignment> {
        let networks = viewer.network.as_deref();
        self.clusters
            .values()
            .filter_map(move |clusters| Some(visible_cluster(clusters, viewer)?.assignments.of(networks)))
    }

    /// Returns the assignment with this name if `viewer` can see it.
    pub fn assignment(&self, viewer: &Viewer, name: &str) -> Option<&Assignment> {
        Some(visible_cluster(self.clusters.get(name)?, viewer)?.assignments.of(viewer.network.as_deref()))
    }

    /// Returns true if listeners and routes are served.
    pub fn serves_outbound(&self) -> bool {
        self.outbound.is_some()
    }

    /// Returns the listeners for `viewer`, sorted by name.
    pub fn listeners(&self, viewer: &Viewer) -> impl Iterator<Item = &Arc<Resource>> {
        let resources = self.outbound.as_ref().map(|outbound| outbound.of(viewer.namespace.as_deref()));
        resources.into_iter().flat_map(|resources| resources.listeners.values())
    }

    /// Returns the listener with this name for `viewer`.
    pub fn listener(&self, viewer: &Viewer, name: &str) -> Option<&Arc<Resource>> {
        self.outbound.as_ref()?.of(viewer.namespace.as_deref()).listeners.get(name)
    }

    /// Returns the route configurations for `viewer`, sorted by name.
    pub fn routes(&self, viewer: &Viewer) -> impl Iterator<Item = &Arc<Resource>> {
        let resources = self.outbound.as_ref().map(|outbound| outbound.of(viewer.namespace.as_deref()));
        resources.into_iter().flat_map(|resources| resources.routes.values())
    }

    /// Returns the route configuration with this name for `viewer`.
    pub fn route(&self, viewer: &Viewer, name: &str) -> Option<&Arc<Resource>> {
        self.outbound.as_ref()?.of(viewer.namespace.as_deref()).routes.get(name)
    }

    /// Returns a sentence for each port of a service that has no listener or route, sorted.
    pub fn outbound_conflicts(&self) -> impl Iterator<Item = &String> {
        self.outbound.iter().flat_map(|outbound| outbound.conflicts())
    }

    /// Returns a sentence for each exported host and port that another namespace exports too, sorted.
    pub fn export_conflicts(&self) -> &BTreeSet<String> {
        &self.export_conflicts
    }

    /// Returns the entries that the snapshot needs although they are silent or unhealthy.
    pub fn preserved(&self) -> &BTreeMap<Key, Preserved> {
        &self.preserved
    }

    /// Returns the services in self-preservation: endpoints are served although their agents are silent.
    pub fn self_preserving_services(&self) -> &BTreeSet<Key> {
        &self.self_preserving_services
    }

    /// Returns true if a client that has more endpoints than the server knows gets no response yet.
    pub fn startup_grace(&self) -> bool {
        self.startup_grace
    }
}

impl BuiltService {
    fn new(service: &Arc<Service>, members: &Members, before: Option<&Self>) -> Self {
        let mut clusters = Vec::new();
        for host in &service.hosts {
            for port in &service.ports {
                let name = cluster_name(host, port);
                let before = before.iter().flat_map(|before| &before.clusters);
                let before = before.into_iter().find(|before| *before.resource.name == *name);
                clusters.push(Arc::new(Cluster::new(
                    service,
                    &name,
                    port,
                    members,
                    before.map(AsRef::as_ref),
                )));
            }
        }
        Self { service: service.clone(), states: members.states().cloned().collect(), clusters }
    }

    /// Returns its clusters, each with the host and port that it was built from.
    fn upstreams(&self) -> impl Iterator<Item = (&Cluster, Upstream<'_>)> {
        let ports = &self.service.ports;
        let hosts = self.service.hosts.iter();
        let hosts_and_ports = hosts.flat_map(move |host| ports.iter().map(move |port| (host, port)));
        hosts_and_ports.zip(&self.clusters).map(|((host, port), cluster)| {
            let (service, cluster_name) = (&*self.service, &*cluster.resource.name);
            let upstream =
                Upstream { service, host, port: port.number, protocol: port.protocol, cluster: cluster_name };
            (&**cluster, upstream)
        })
    }

    /// Returns the names of its clusters, which are also those of its assignments.
    fn names(&self) -> impl Iterator<Item = Arc<str>> {
        self.clusters.iter().map(|cluster| cluster.resource.name.clone())
    }

    /// Returns true if the clusters built from this state need not be built again.
    fn is_same(&self, service: &Arc<Service>, members: &Members) -> bool {
        (Arc::ptr_eq(&self.service, service) || self.service == *service) && members.states().eq(&self.states)
    }
}

impl Cluster {
    fn new(service: &Service, name: &str, port: &Port, members: &Members, before: Option<&Self>) -> Self {
        let any = wire::cluster(&ClusterSpec {
            name,
            http2: matches!(port.protocol, Protocol::Http2 | Protocol::Grpc),
        });
        let resource = match before {
            Some(before) if before.resource.any == any => before.resource.clone(),
            _ => {
                let version = Version { hash: hash([any.as_ref()]), endpoints: None };
                Arc::new(Resource { name: name.into(), version, any })
            }
        };
        let assignments =
            Assignments::new(&resource.name, members, port, before.map(|before| &before.assignments));
        Self { namespace: service.key.namespace.clone(), export_to: service.export_to, resource, assignments }
    }
}

/// Of the clusters with the same name, returns that of the viewer's namespace, or else the first
/// that is exported to all namespaces.
fn visible_cluster<'a>(clusters: &'a [Arc<Cluster>], viewer: &Viewer) -> Option<&'a Cluster> {
    let own = |cluster: &&Arc<Cluster>| viewer.namespace.as_ref() == Some(&cluster.namespace);
    let for_all = || clusters.iter().find(|cluster| cluster.export_to == ExportTo::All);
    clusters.iter().find(own).or_else(for_all).map(AsRef::as_ref)
}

/// Returns the cluster name in Istio's format.
fn cluster_name(host: &str, port: &Port) -> String {
    format!("outbound|{}||{host}", port.number)
}

/// Returns the first eight bytes of the SHA-256 of the concatenated parts.
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let hash: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = hash;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests;
