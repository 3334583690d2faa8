//! The endpoints of a service: which entries it selects, their ports, and which of them a network
//! sees.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::hash;
use super::namespace::Namespaces;
use crate::entries::Workload;
use crate::message::{Resource, Version};
use crate::objects::{Key, LastEndpoint, Port, Source, Spec};
use crate::xds::{self, EndpointSpec};

/// Prefix of Unix domain socket addresses, which have no port.
const UNIX: &str = "unix://";

/// An encoded ClusterLoadAssignment with its endpoints.
#[derive(Clone, Debug)]
pub struct Assignment {
    pub resource: Arc<Resource>,
    /// Number of endpoints plus the number of entries that are accounted_for to be no endpoint. Awaited
    /// entries are not counted.
    pub accounted_for: u32,
    endpoints: Vec<EndpointSpec>,
}

/// An entry for one port, with its endpoint if it is served.
struct Placed<'a> {
    network: Option<&'a str>,
    endpoint: Option<EndpointSpec>,
    accounted_for: bool,
}

/// The entries and inline endpoints of a service.
pub(super) struct Members<'a> {
    members: Vec<Member<'a>>,
}

struct Member<'a> {
    key: Option<&'a Key>,
    spec: &'a Spec,
    /// `None` for an endpoint that is inline in the ServiceEntry.
    shared: Option<&'a Arc<Spec>>,
    served: bool,
    kept: bool,
    accounted_for: bool,
}

/// The state of a member that determines its endpoint. Specs are compared by pointer, because an
/// entry keeps its [`Arc`].
#[derive(Debug)]
pub(super) struct State {
    spec: Arc<Spec>,
    served: bool,
    kept: bool,
    accounted_for: bool,
}

impl<'a> Members<'a> {
    pub(super) fn of(
        source: &'a Source,
        namespaces: &'a Namespaces,
        namespace: &str,
        last_endpoint: LastEndpoint,
    ) -> Self {
        let labels = match source {
            Source::Inline(specs) => {
                let inline = |spec: &'a Spec| Member {
                    key: None,
                    spec,
                    shared: None,
                    served: true,
                    kept: false,
                    accounted_for: true,
                };
                return Self { members: specs.iter().map(inline).collect() };
            }
            Source::Selector(labels) => labels,
        };
        let selected: Vec<&Workload> = namespaces.select(namespace, labels).collect();
        let loses_last =
            last_endpoint == LastEndpoint::Keep && selected.iter().all(|workload| !workload.served);
        let kept = selected.iter().filter(|workload| loses_last && workload.keepable);
        let kept = kept.filter(|workload| workload.unserved_since.is_some());
        // The entries are sorted by key, so of those with the same time the one with the lowest key
        // is kept.
        let kept = kept.rev().max_by_key(|workload| workload.unserved_since).map(|workload| &workload.key);
        let member = |workload: &'a Workload| Member {
            key: Some(&workload.key),
            spec: &workload.spec,
            shared: Some(&workload.spec),
            served: workload.served,
            kept: kept == Some(&workload.key),
            accounted_for: workload.served || !workload.awaited,
        };
        Self { members: selected.into_iter().map(member).collect() }
    }

    /// Returns the states of all members that are not inline.
    pub(super) fn states(&self) -> Vec<State> {
        let state = |member: &Member| {
            let &Member { served, kept, accounted_for, .. } = member;
            member.shared.map(|spec| State { spec: spec.clone(), served, kept, accounted_for })
        };
        self.members.iter().filter_map(state).collect()
    }

    /// Returns true if the members have these states.
    pub(super) fn have_states(&self, states: &[State]) -> bool {
        let shared = self.members.iter().filter_map(|member| Some((member, member.shared?)));
        let mut states = states.iter();
        let same = shared.into_iter().all(|(member, spec)| {
            states.next().is_some_and(|state| {
                Arc::ptr_eq(&state.spec, spec)
                    && (state.served, state.kept, state.accounted_for)
                        == (member.served, member.kept, member.accounted_for)
            })
        });
        same && states.next().is_none()
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = &'a Key> {
        self.members.iter().filter(|member| member.kept).filter_map(|member| member.key)
    }

    /// Returns the endpoints for one port, in the order of the members.
    pub(super) fn endpoints(&self, port: &Port) -> Placements<'_> {
        let place = |member: &Member<'a>| Placed {
            network: member.spec.network.as_deref(),
            endpoint: (member.served || member.kept).then(|| endpoint(member.spec, port)),
            accounted_for: member.accounted_for,
        };
        Placements(self.members.iter().map(place).collect())
    }
}

/// The members of a service for one port.
pub(super) struct Placements<'a>(Vec<Placed<'a>>);

fn endpoint(spec: &Spec, port: &Port) -> EndpointSpec {
    let number = spec.ports.get(&port.name).copied().or(port.target_port).unwrap_or(port.number);
    EndpointSpec {
        locality: spec.locality.clone().unwrap_or_default(),
        address: spec.address.clone(),
        port: if spec.address.starts_with(UNIX) { 0 } else { number },
        weight: spec.weight.max(1),
    }
}

/// The assignments of one cluster as seen from each network.
#[derive(Debug)]
pub(super) struct Assignments {
    /// Seen by viewers without a network.
    all: Assignment,
    /// Seen by viewers in a network that some endpoint has.
    networks: BTreeMap<String, Assignment>,
    /// Seen by viewers in any other network; `None` if it equals `all`.
    other_networks: Option<Assignment>,
}

impl Assignments {
    pub(super) fn new(name: &Arc<str>, placements: Placements, before: Option<&Self>) -> Self {
        let Placements(placed) = placements;
        let networks: BTreeSet<&str> = placed.iter().filter_map(|placed| placed.network).collect();
        let make = |sees: &dyn Fn(&Placed) -> bool, before: Option<&Assignment>| {
            Assignment::new(name, placed.iter().filter(|placed| sees(placed)), before)
        };
        let of_network = |network: &str| {
            let before = before.and_then(|before| before.networks.get(network));
            make(&|placed| placed.network.is_none_or(|other| other == network), before)
        };
        let other_networks = (!networks.is_empty()).then(|| {
            let before = before.and_then(|before| before.other_networks.as_ref());
            make(&|placed| placed.network.is_none(), before)
        });
        Self {
            all: make(&|_| true, before.map(|before| &before.all)),
            networks: networks.iter().map(|name| ((*name).to_owned(), of_network(name))).collect(),
            other_networks,
        }
    }

    pub(super) fn of(&self, network: Option<&str>) -> &Assignment {
        let Some(network) = network else { return &self.all };
        self.networks.get(network).or(self.other_networks.as_ref()).unwrap_or(&self.all)
    }
}

impl Assignment {
    /// Returns the endpoints, sorted and without duplicate addresses and ports.
    pub fn endpoints(&self) -> &[EndpointSpec] {
        &self.endpoints
    }

    fn new<'a>(name: &Arc<str>, placed: impl Iterator<Item = &'a Placed<'a>>, before: Option<&Self>) -> Self {
        let mut accounted_for = 0;
        let mut endpoints = Vec::new();
        for placed in placed {
            accounted_for += u32::from(placed.accounted_for);
            endpoints.extend(placed.endpoint.clone());
        }
        endpoints.sort_unstable();
        // Two entries with the same address give one endpoint.
        let mut seen = HashSet::new();
        let is_new: Vec<bool> = endpoints
            .iter()
            .map(|endpoint| seen.insert((endpoint.address.as_str(), endpoint.port)))
            .collect();
        let mut is_new = is_new.into_iter();
        endpoints.retain(|_| is_new.next().unwrap_or(true));
        if let Some(before) = before.filter(|before| before.endpoints == endpoints) {
            return Self { resource: before.resource.clone(), accounted_for, endpoints };
        }
        let any = xds::assignment(name, &endpoints);
        let version = Version { hash: hash([any.as_ref()]), endpoints: u32::try_from(endpoints.len()).ok() };
        Self { resource: Arc::new(Resource { name: name.clone(), version, any }), accounted_for, endpoints }
    }
}
