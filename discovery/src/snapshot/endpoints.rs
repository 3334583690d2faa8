//! The endpoints of a service: which entries it selects, their ports, and which of them a network
//! sees.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::hash;
use super::namespace::Namespaces;
use crate::entries::{Preserved, Workload};
use crate::message::{Resource, Version};
use crate::objects::{Key, LastEndpoint, Port, Service, Source, Spec};
use crate::wire::{self, EndpointSpec};

/// Prefix of Unix domain socket addresses, which have no port.
const UNIX: &str = "unix://";

/// An encoded ClusterLoadAssignment with its endpoints.
#[derive(Clone, Debug)]
pub struct Assignment {
    pub resource: Arc<Resource>,
    /// Number of endpoints plus the number of entries that are known to be no endpoint. Entries that
    /// were not seen since the start are not counted.
    pub accounted_for: u32,
    endpoints: Vec<EndpointSpec>,
}

/// The entries and inline endpoints of a service.
pub(super) struct Members<'a>(Vec<Member<'a>>);

struct Member<'a> {
    /// `None` for an endpoint that is inline in the ServiceEntry.
    key: Option<&'a Key>,
    preserved: Option<Preserved>,
    state: State,
}

/// The state of a member that determines its endpoint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    spec: Arc<Spec>,
    served: bool,
    preserved: bool,
    accounted_for: bool,
}

impl<'a> Members<'a> {
    pub(super) fn of(
        service: &'a Service,
        namespaces: &'a Namespaces,
        last_endpoint: LastEndpoint,
        preserve: impl FnOnce(Vec<&'a Workload>) -> Vec<(&'a Key, Preserved)>,
    ) -> Self {
        let labels = match &service.source {
            Source::Inline(specs) => {
                let inline = |spec: &Arc<Spec>| {
                    let state =
                        State { spec: spec.clone(), served: true, preserved: false, accounted_for: true };
                    Member { key: None, preserved: None, state }
                };
                return Self(specs.iter().map(inline).collect());
            }
            Source::Selector(labels) => labels,
        };
        let selected: Vec<&Workload> = namespaces.select(&service.key.namespace, labels).collect();
        let mut preserved: BTreeMap<&Key, Preserved> = preserve(selected.clone()).into_iter().collect();
        let loses_last = last_endpoint == LastEndpoint::Keep
            && selected.iter().all(|workload| !workload.served)
            && !preserved.values().any(|preserved| preserved.is_endpoint());
        let last = selected.iter().filter(|workload| loses_last && workload.preservable);
        let last = last.filter(|workload| workload.unserved_since.is_some());
        // The entries are sorted by key, so of those with the same time the one with the lowest key
        // is preserved.
        let last = last.rev().max_by_key(|workload| workload.unserved_since);
        preserved.extend(last.map(|workload| (&workload.key, Preserved::LastEndpoint)));
        let member = |workload: &'a Workload| {
            let preserved = preserved.get(&workload.key).copied();
            let state = State {
                spec: workload.spec.clone(),
                served: workload.served,
                preserved: preserved.is_some_and(Preserved::is_endpoint),
                accounted_for: workload.accounted_for,
            };
            Member { key: Some(&workload.key), preserved, state }
        };
        Self(selected.into_iter().map(member).collect())
    }

    pub(super) fn states(&self) -> impl Iterator<Item = &State> {
        self.0.iter().map(|member| &member.state)
    }

    pub(super) fn preserved(&self) -> impl Iterator<Item = (&'a Key, Preserved)> {
        self.0.iter().filter_map(|member| Some((member.key?, member.preserved?)))
    }
}

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
    pub(super) fn new(name: &Arc<str>, members: &Members, port: &Port, before: Option<&Self>) -> Self {
        let networks = members.states().filter_map(|state| state.spec.network.clone());
        let networks: BTreeSet<String> = networks.collect();
        let build = |sees: &dyn Fn(Option<&str>) -> bool, before: Option<&Assignment>| {
            let states = members.states().filter(|state| sees(state.spec.network.as_deref()));
            Assignment::new(name, states, port, before)
        };
        let other_networks = (!networks.is_empty()).then(|| {
            let before = before.and_then(|before| before.other_networks.as_ref());
            build(&|network| network.is_none(), before)
        });
        let of_network = |network: String| {
            let before = before.and_then(|before| before.networks.get(&network));
            let assignment = build(&|other| other.is_none_or(|other| other == network), before);
            (network, assignment)
        };
        Self {
            all: build(&|_| true, before.map(|before| &before.all)),
            networks: networks.into_iter().map(of_network).collect(),
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

    fn new<'a>(
        name: &Arc<str>,
        states: impl Iterator<Item = &'a State>,
        port: &Port,
        before: Option<&Self>,
    ) -> Self {
        let mut accounted_for = 0;
        let mut endpoints = Vec::new();
        for state in states {
            accounted_for += u32::from(state.accounted_for);
            endpoints.extend((state.served || state.preserved).then(|| endpoint(&state.spec, port)));
        }
        endpoints.sort_unstable();
        // Two entries with the same address give one endpoint.
        let mut seen = HashSet::new();
        endpoints.retain(|endpoint: &EndpointSpec| seen.insert((endpoint.address.clone(), endpoint.port)));
        if let Some(before) = before.filter(|before| before.endpoints == endpoints) {
            return Self { resource: before.resource.clone(), accounted_for, endpoints };
        }
        let any = wire::assignment(name, &endpoints);
        let version = Version { hash: hash([any.as_ref()]), endpoints: u32::try_from(endpoints.len()).ok() };
        Self { resource: Arc::new(Resource { name: name.clone(), version, any }), accounted_for, endpoints }
    }
}
