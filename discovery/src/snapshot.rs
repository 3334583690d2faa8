//! What Envoys are served: configuration and entries become clusters and assignments.
//!
//! Pure. Everything is encoded once per content, and what did not change keeps the encoding of the snapshot before. A snapshot never changes;
//! all streams read the same one. Not here: who has got what (`stream`).

mod endpoints;
mod namespace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::entries::Workload;
use crate::message::{Resource, Version};
use crate::objects::{Config, ExportTo, Key, LastEndpoint, Port, Protocol, Service};
use crate::xds::{self, ClusterSpec};

pub use endpoints::Assignment;
use endpoints::{Assignments, Members, State};
use namespace::Namespaces;

/// What the flags say, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// For services that do not say it themselves.
    pub last_endpoint: LastEndpoint,
    /// The store was empty or lost at the start, and those who were in it may still be on their way back: a client that holds more endpoints
    /// than are known here is not answered yet.
    pub settling: bool,
}

/// Who looks: what it sees depends on where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Viewer {
    /// By its certificate, else by its own account.
    pub namespace: Option<String>,
    /// Absent: it sees all networks.
    pub network: Option<String>,
}

/// All that is served, to whomever.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// By name; several where namespaces have the same host to themselves, in the order of their services.
    clusters: BTreeMap<Arc<str>, Vec<Arc<Cluster>>>,
    /// The same by service, to find out what needs no second look.
    services: BTreeMap<Key, Arc<Served>>,
    kept: BTreeSet<Key>,
    settling: bool,
}

/// One service, as it was served.
#[derive(Debug)]
struct Served {
    service: Arc<Service>,
    states: Vec<State>,
    clusters: Vec<Arc<Cluster>>,
}

/// One host and port.
#[derive(Debug)]
struct Cluster {
    namespace: String,
    export_to: ExportTo,
    resource: Arc<Resource>,
    assignments: Assignments,
}

impl Snapshot {
    /// Makes one; what is as in `previous` is taken from there.
    pub fn build(
        config: &Config,
        workloads: &mut dyn Iterator<Item = Workload>,
        settings: SnapshotSettings,
        previous: Option<&Self>,
    ) -> Self {
        let namespaces = Namespaces::new(workloads);
        let mut snapshot = Self { settling: settings.settling, ..Self::default() };
        for service in config.services.values() {
            let last_endpoint = service.last_endpoint.unwrap_or(settings.last_endpoint);
            let members = Members::of(&service.source, &namespaces, &service.key.namespace, last_endpoint);
            let before = previous.and_then(|previous| previous.services.get(&service.key));
            let served = match before {
                Some(before) if before.is_same(service, &members) => before.clone(),
                before => Arc::new(Served::new(service, &members, before.map(AsRef::as_ref))),
            };
            snapshot.kept.extend(members.kept().cloned());
            snapshot.add(served);
        }
        snapshot
    }

    /// A second service of the namespace with the same host and port hides behind the first.
    fn add(&mut self, served: Arc<Served>) {
        for cluster in &served.clusters {
            let others = self.clusters.entry(cluster.resource.name.clone()).or_default();
            if others.iter().all(|other| other.namespace != cluster.namespace) {
                others.push(cluster.clone());
            }
        }
        self.services.insert(served.service.key.clone(), served);
    }

    /// The clusters that `viewer` sees, by name.
    pub fn clusters<'a>(&'a self, viewer: &'a Viewer) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.clusters.values().filter_map(|clusters| Some(&visible(clusters, viewer)?.resource))
    }

    /// One of them.
    pub fn cluster(&self, viewer: &Viewer, name: &str) -> Option<&Arc<Resource>> {
        Some(&visible(self.clusters.get(name)?, viewer)?.resource)
    }

    /// The assignments that `viewer` sees, by name.
    pub fn assignments<'a>(&'a self, viewer: &'a Viewer) -> impl Iterator<Item = &'a Assignment> {
        let networks = viewer.network.as_deref();
        self.clusters
            .values()
            .filter_map(move |clusters| Some(visible(clusters, viewer)?.assignments.of(networks)))
    }

    /// One of them.
    pub fn assignment(&self, viewer: &Viewer, name: &str) -> Option<&Assignment> {
        Some(visible(self.clusters.get(name)?, viewer)?.assignments.of(viewer.network.as_deref()))
    }

    /// The entries that stay as the last endpoint of a service although they are not healthy.
    pub fn kept(&self) -> &BTreeSet<Key> {
        &self.kept
    }

    /// Whether clients that hold more than is known here are not answered yet.
    pub fn settling(&self) -> bool {
        self.settling
    }
}

impl Served {
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
        Self { service: service.clone(), states: members.states(), clusters }
    }

    /// Whether nothing that matters is different.
    fn is_same(&self, service: &Arc<Service>, members: &Members) -> bool {
        (Arc::ptr_eq(&self.service, service) || self.service == *service) && members.are(&self.states)
    }
}

impl Cluster {
    fn new(service: &Service, name: &str, port: &Port, members: &Members, before: Option<&Self>) -> Self {
        let any = xds::cluster(&ClusterSpec {
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
        let assignments = Assignments::new(
            &resource.name,
            members.endpoints(port),
            before.map(|before| &before.assignments),
        );
        Self { namespace: service.key.namespace.clone(), export_to: service.export_to, resource, assignments }
    }
}

/// Of those with the same name: that of the viewer's own namespace, else the first that is for all.
fn visible<'a>(clusters: &'a [Arc<Cluster>], viewer: &Viewer) -> Option<&'a Cluster> {
    let own = |cluster: &&Arc<Cluster>| viewer.namespace.as_ref() == Some(&cluster.namespace);
    let for_all = || clusters.iter().find(|cluster| cluster.export_to == ExportTo::All);
    clusters.iter().find(own).or_else(for_all).map(AsRef::as_ref)
}

/// As Istio names it.
fn cluster_name(host: &str, port: &Port) -> String {
    format!("outbound|{}||{host}", port.number)
}

/// The first eight bytes of the parts' SHA-256.
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
