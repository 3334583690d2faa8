//! Subscription of one stream to one type: its names, what the peer has, what is unacknowledged,
//! and the next response.

mod difference;
mod kept_endpoints;
mod pending;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use difference::Difference;
use kept_endpoints::KeptEndpoints;
use pending::Pending;
use serde::Serialize;

use super::version_counts;
use crate::message::{Resource, Response, TypeUrl, Variant, Version};
use crate::snapshot::{Snapshot, Viewer, hash};

/// Minimum interval between two pushes of a type: at most 10 pushes per second.
const PUSH_INTERVAL: Duration = Duration::from_millis(100);
/// The version of a resource that does not exist.
const MISSING: Version = Version { hash: 0, endpoints: None };

/// The inputs of a response.
pub(super) struct Context<'a> {
    pub(super) now: Duration,
    pub(super) snapshot: &'a Snapshot,
    pub(super) viewer: &'a Viewer,
    /// Names whose resources must not be sent yet.
    pub(super) blocked: &'a dyn Fn(&str) -> bool,
    /// True if nothing must be sent yet.
    pub(super) wait: bool,
}

/// Result of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestResult {
    Taken,
    /// The request rejects a response. `is_new` is false if the previous rejection had the same
    /// text.
    Nacked {
        text: String,
        is_new: bool,
    },
    /// The stream has more names than allowed.
    TooMany,
    /// The stream has more names than allowed that do not exist.
    TooManyUnknown,
}

/// JSON view of a subscription for `/debug/workloads`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubscriptionView {
    /// Type of the resources: `CDS`, `EDS`, `LDS` or `RDS`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Version that was sent last.
    pub version: String,
    /// Version that was acknowledged last.
    pub acked: Option<String>,
    /// Error message of the last rejection.
    pub nack: Option<String>,
}

#[derive(Debug)]
pub(super) struct Subscription {
    type_url: TypeUrl,
    variant: Variant,
    /// True after the first request.
    requested: bool,
    wildcard: bool,
    names: BTreeSet<Arc<str>>,
    /// What the peer was sent or reports to have. A resource that is missing here is sent again.
    sent_versions: BTreeMap<Arc<str>, Version>,
    /// Numbers of endpoints that the peer has from before a lost store; used only during the
    /// snapshot's startup grace.
    endpoints_before_restart: BTreeMap<Arc<str>, u32>,
    kept_endpoints: KeptEndpoints,
    /// Version of the response that is neither acknowledged nor rejected.
    in_flight: Option<String>,
    nonce: String,
    version: String,
    acked: Option<String>,
    nack: Option<String>,
    /// True if the peer expects a response even without a difference.
    response_required: bool,
    /// True if the response follows from a request, so that the minimum interval between pushes
    /// does not apply.
    bypass_interval: bool,
    /// Clusters that were pushed and need their assignment again.
    warming: BTreeSet<Arc<str>>,
    last_push: Option<Duration>,
    due: Option<Duration>,
    pending: Pending,
}

impl Subscription {
    pub(super) fn new(type_url: TypeUrl, variant: Variant) -> Self {
        Self {
            type_url,
            variant,
            requested: false,
            wildcard: false,
            names: BTreeSet::new(),
            sent_versions: BTreeMap::new(),
            endpoints_before_restart: BTreeMap::new(),
            kept_endpoints: KeptEndpoints::default(),
            in_flight: None,
            nonce: String::new(),
            version: String::new(),
            acked: None,
            nack: None,
            response_required: false,
            bypass_interval: false,
            warming: BTreeSet::new(),
            last_push: None,
            due: None,
            pending: Pending::default(),
        }
    }

    pub(super) fn subscribes(&self) -> bool {
        self.wildcard || !self.names.is_empty()
    }

    /// Returns true if the peer has some version of the resource.
    pub(super) fn has(&self, name: &str) -> bool {
        self.sent_versions.contains_key(name)
    }

    /// Returns true if a response is not acknowledged yet, or is delayed.
    pub(super) fn is_behind(&self) -> bool {
        self.subscribes() && (self.in_flight.is_some() || self.due.is_some())
    }

    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    pub(super) fn view(&self) -> SubscriptionView {
        SubscriptionView {
            kind: self.type_url.short_name(),
            version: self.version.clone(),
            acked: self.acked.clone(),
            nack: self.nack.clone(),
        }
    }

    /// For assignments: records that their clusters were pushed. Envoy warms a changed cluster
    /// until it receives the assignment, even one that it has. In SotW Envoy requests it again, in
    /// the incremental variant it may not.
    pub(super) fn clusters_pushed(&mut self, names: impl Iterator<Item = Arc<str>>) {
        self.warming.extend(names);
        if self.variant == Variant::Delta && self.requested {
            self.send_warming_again();
        }
    }

    fn send_warming_again(&mut self) {
        for name in std::mem::take(&mut self.warming) {
            self.sent_versions.remove(&name);
            self.pending.add(name);
        }
    }

    /// Returns the next response with this nonce, if one is due.
    pub(super) fn respond(&mut self, context: &Context, nonce: String) -> Option<Response> {
        self.due = None;
        let is_asked = self.subscribes() || self.response_required;
        if !is_asked || self.in_flight.is_some() || context.wait {
            return None;
        }
        self.forget_counts(context);
        self.pending.follow(context.snapshot);
        let difference = self.difference(context);
        let differs = !difference.changed.is_empty() || !difference.gone.is_empty();
        // An empty SotW response of assignments or routes has no meaning, so the response is sent when
        // there is one.
        let may_be_empty = self.variant == Variant::Delta || self.type_url.has_full_responses();
        let response_required = self.response_required && may_be_empty;
        if !differs && !response_required {
            self.pending.set_compared(difference.blocked);
            return None;
        }
        let earliest = self.last_push.map(|last| last.saturating_add(PUSH_INTERVAL));
        if !self.bypass_interval && earliest.is_some_and(|earliest| context.now < earliest) {
            self.due = earliest;
            return None;
        }
        Some(self.response(difference, context, nonce))
    }

    fn response(&mut self, difference: Difference, context: &Context, nonce: String) -> Response {
        let Difference { changed, gone, blocked } = difference;
        self.pending.set_compared(blocked);
        // In the incremental variant, the peer itself reports the versions that it has.
        if self.variant == Variant::Sotw && self.type_url == TypeUrl::Endpoint {
            self.kept_endpoints.sent(changed.iter().map(|resource| &resource.name), |name| {
                let sent = self.sent_versions.get(name).map(|version| version.endpoints.unwrap_or_default());
                sent.or_else(|| self.endpoints_before_restart.get(name).copied()).unwrap_or_default()
            });
        }
        for resource in &changed {
            self.sent_versions.insert(resource.name.clone(), resource.version);
        }
        for name in &gone {
            if self.names.contains(name) {
                self.sent_versions.insert(name.clone(), MISSING);
            } else {
                self.sent_versions.remove(name);
            }
        }
        let (resources, removed) = match (self.variant, &self.type_url) {
            (Variant::Delta, _) => (changed, gone.into_iter().collect()),
            (Variant::Sotw, TypeUrl::Cluster) => {
                (self.all(context.snapshot.clusters(context.viewer)), Vec::new())
            }
            (Variant::Sotw, TypeUrl::Listener) => {
                (self.all(context.snapshot.listeners(context.viewer)), Vec::new())
            }
            (Variant::Sotw, _) => (changed, Vec::new()),
        };
        self.version = self.version_of_all();
        self.in_flight = Some(self.version.clone());
        self.nonce.clone_from(&nonce);
        self.response_required = false;
        self.bypass_interval = false;
        self.last_push = Some(context.now);
        let (type_url, version) = (self.type_url.clone(), self.version.clone());
        Response { type_url, version, nonce, resources, removed }
    }

    fn all<'a>(&self, resources: impl Iterator<Item = &'a Arc<Resource>>) -> Vec<Arc<Resource>> {
        resources.filter(|it| self.wildcard || self.names.contains(&it.name)).cloned().collect()
    }

    /// Computes the version of wildcard that the peer has, including the numbers of endpoints.
    fn version_of_all(&self) -> String {
        let versions: Vec<_> =
            self.sent_versions.iter().map(|(name, version)| (name, version.hash.to_be_bytes())).collect();
        let parts = versions.iter().flat_map(|(name, hash)| [name.as_bytes(), hash.as_slice()]);
        let version = Version { hash: hash(parts), endpoints: None };
        if self.type_url != TypeUrl::Endpoint {
            return version.to_string();
        }
        let mut endpoints = self.endpoints_before_restart.clone();
        endpoints.extend(
            self.sent_versions.iter().map(|(name, it)| (name.clone(), it.endpoints.unwrap_or_default())),
        );
        endpoints.extend(self.kept_endpoints.remaining());
        format!("{version}-{}", version_counts::encode(&endpoints.into_values().collect::<Vec<_>>()))
    }
}
