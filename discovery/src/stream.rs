//! The state of one ADS stream: subscriptions, what the peer has received, and what is sent next.
//!
//! The module does no I/O: requests, snapshots and messages from the registry are inputs, responses
//! and reports are effects, and time is an argument. There is no queue: at most one response of
//! each type is unacknowledged, and the next response is computed as the difference between what
//! the peer has and the newest snapshot. Encoding (`crate::wire`), sockets (`server`) and the effect
//! of reports (`entries`) are elsewhere.

mod outbound;
mod subscription;
mod unserved_type;
mod version_counts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use workload_health::{Hello, Report, WorkloadProbe};

use crate::entries::{Code, Node, StreamCommand};
use crate::message::{Request, Resource, ResourceSubscription, Response, TypeUrl, Variant, Version};
use crate::objects::Group;
use crate::snapshot::{Snapshot, Viewer, hash};
use crate::wire;

use outbound::OutboundSubscriptions;
pub use subscription::SubscriptionView;
use subscription::{Context, RequestResult, Subscription};
use unserved_type::UnservedType;

/// Maximum number of types on one stream that this server does not serve.
const UNSERVED_TYPES: usize = 32;
/// Resource name in a hello.
const PROBE_NAME: &str = "probe";

/// Input of a step.
#[derive(Debug)]
pub enum Input {
    /// The peer sent a request.
    Request(Box<Request>),
    /// The registry has a message for the peer.
    Command(StreamCommand),
    /// A new snapshot was published, or [`AdsStream::next_due`] has passed.
    Poll,
}

/// An effect to be executed, in the returned order.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// The first request arrived; the registry must register the stream.
    Open(Box<Node>),
    /// The registry must process the report.
    Report(Report),
    /// The agent accepted the probe of this version.
    ProbeAcked(String),
    /// The agent rejected the probe with this error message.
    ProbeNacked(String),
    /// Sends the response to the peer.
    Send(Response),
    /// Closes the stream, because the peer violated a rule.
    Close(Code, String),
    /// An event for the log and the metrics.
    Event(Event),
}

/// An event that is counted, and logged once.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer rejected a response.
    Nacked {
        type_url: TypeUrl,
        /// The peer's error message.
        text: String,
        /// False if the previous rejection had the same text.
        is_new: bool,
    },
    /// The first request on this stream for a type that this server does not serve.
    UnknownType(String),
}

#[derive(Debug)]
pub struct AdsStream {
    /// Namespace in the peer's certificate.
    namespace: Option<String>,
    viewer: Option<Viewer>,
    clusters: Subscription,
    endpoints: Subscription,
    /// Listeners and routes; `None` before the first request. Agents never request them.
    outbound: Option<Box<OutboundSubscriptions>>,
    variant: Variant,
    unserved: BTreeMap<TypeUrl, UnservedType>,
    /// Nonce and version of the hello that is not acknowledged yet.
    hello: Option<(String, String)>,
    nonces: u64,
}

impl AdsStream {
    /// Creates the state of a stream without a request. `namespace` is that of the peer's
    /// certificate.
    pub fn new(variant: Variant, namespace: Option<String>) -> Self {
        Self {
            namespace,
            viewer: None,
            clusters: Subscription::new(TypeUrl::Cluster, variant),
            endpoints: Subscription::new(TypeUrl::Endpoint, variant),
            outbound: None,
            variant,
            unserved: BTreeMap::new(),
            hello: None,
            nonces: 0,
        }
    }

    /// Processes one input. The stream must not be stepped again after [`Effect::Close`].
    pub fn step(&mut self, now: Duration, input: Input, snapshot: &Snapshot) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Request(request) => self.request(*request, snapshot, &mut effects),
            Input::Command(StreamCommand::Hello { session, heartbeat, probe }) => {
                effects.push(Effect::Send(self.hello(session, heartbeat, probe)));
            }
            Input::Command(StreamCommand::Ack { epoch, generation }) => {
                let (nonce, version) = (self.nonce(), format!("{epoch}/{generation}"));
                let (type_url, resources, removed) = (TypeUrl::Health, Vec::new(), Vec::new());
                effects.push(Effect::Send(Response { type_url, version, nonce, resources, removed }));
            }
            Input::Command(StreamCommand::Close { code, text }) => effects.push(Effect::Close(code, text)),
            Input::Poll => {}
        }
        if !matches!(effects.last(), Some(Effect::Close(..))) {
            self.respond(now, snapshot, &mut effects);
        }
        effects
    }

    /// Returns when [`Input::Poll`] is due even if nothing happens.
    pub fn next_due(&self) -> Option<Duration> {
        self.subscriptions().filter_map(Subscription::due).min()
    }

    /// Returns true if the stream subscribes to resources of snapshots. Streams of agents do not.
    pub fn subscribes(&self) -> bool {
        self.subscriptions().any(Subscription::subscribes)
    }

    /// Returns each subscription for `/debug/workloads`.
    pub fn views(&self) -> impl Iterator<Item = SubscriptionView> {
        self.subscriptions().filter(|it| it.subscribes()).map(Subscription::view)
    }

    fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        let outbound = self.outbound.iter().flat_map(|outbound| [&outbound.listeners, &outbound.routes]);
        [&self.clusters, &self.endpoints].into_iter().chain(outbound)
    }

    fn nonce(&mut self) -> String {
        self.nonces += 1;
        self.nonces.to_string()
    }

    fn request(&mut self, request: Request, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        let Request { node, type_url, nonce, error, subscription, report } = request;
        if self.viewer.is_none() {
            let Some(node) = node else {
                let text = "node: must be set in the first request".to_owned();
                return effects.push(Effect::Close(Code::InvalidArgument, text));
            };
            let namespace = self.namespace.clone().or_else(|| node.namespace.clone());
            self.viewer = Some(Viewer { namespace, network: node.network.clone() });
            effects.push(Effect::Open(node));
        }
        let state = match type_url {
            TypeUrl::Listener | TypeUrl::Route if snapshot.serves_outbound() => {
                let new = || Box::new(OutboundSubscriptions::new(self.variant));
                let outbound = self.outbound.get_or_insert_with(new);
                if type_url == TypeUrl::Listener { &mut outbound.listeners } else { &mut outbound.routes }
            }
            TypeUrl::Cluster => &mut self.clusters,
            TypeUrl::Endpoint => &mut self.endpoints,
            TypeUrl::Probe => return self.hello_acknowledged(&nonce, error, effects),
            // With a nonce, the message acknowledges the server's acknowledgement and is no report.
            TypeUrl::Health if !nonce.is_empty() => return,
            TypeUrl::Health => return effects.extend(report.map(Effect::Report)),
            TypeUrl::Listener | TypeUrl::Route | TypeUrl::Other(_) => {
                return self.unserved_request(type_url, subscription, &nonce, error, effects);
            }
        };
        let viewer = self.viewer.as_ref();
        let exists = |name: &str| {
            viewer.is_some_and(|viewer| match type_url {
                TypeUrl::Listener => snapshot.listener(viewer, name).is_some(),
                TypeUrl::Route => snapshot.route(viewer, name).is_some(),
                _ => snapshot.cluster(viewer, name).is_some(),
            })
        };
        match state.request(subscription, &nonce, error, snapshot.startup_grace(), exists) {
            RequestResult::Taken => {}
            RequestResult::Nacked { text, is_new } => {
                effects.push(Effect::Event(Event::Nacked { type_url, text, is_new }));
            }
            RequestResult::TooManyUnknown => {
                let limit = wire::UNKNOWN_NAMES_LIMIT;
                let text = format!("resource_names: more than {limit} names do not exist");
                effects.push(Effect::Close(Code::InvalidArgument, text));
            }
            RequestResult::TooMany => {
                let text = format!("resource_names: more than {} or 4 MiB on one stream", wire::NAMES_LIMIT);
                effects.push(Effect::Close(Code::InvalidArgument, text));
            }
        }
    }

    fn unserved_request(
        &mut self,
        type_url: TypeUrl,
        subscription: ResourceSubscription,
        nonce: &str,
        error: Option<String>,
        effects: &mut Vec<Effect>,
    ) {
        if !self.unserved.contains_key(&type_url) {
            if self.unserved.len() >= UNSERVED_TYPES {
                let text = format!("type_url: more than {UNSERVED_TYPES} types that are not served");
                return effects.push(Effect::Close(Code::InvalidArgument, text));
            }
            effects.push(Effect::Event(Event::UnknownType(type_url.as_str().to_owned())));
        }
        let unserved = self.unserved.entry(type_url.clone()).or_default();
        if unserved.request(subscription, nonce)
            && let Some(text) = error
        {
            effects.push(Effect::Event(Event::Nacked { type_url, text, is_new: true }));
        }
    }

    /// Sends the responses that are due. Clusters are sent first, since assignments refer to them.
    fn respond(&mut self, now: Duration, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        let Some(viewer) = &self.viewer else { return };
        let context = |blocked| Context { now, snapshot, viewer, blocked, wait: false };
        let nonce = (self.nonces + 1).to_string();
        if let Some(response) = self.clusters.respond(&context(&|_| false), nonce) {
            self.nonces += 1;
            let pushed = response.resources.iter().map(|resource| resource.name.clone());
            self.endpoints.clusters_pushed(pushed);
            effects.push(Effect::Send(response));
        }
        // While a push of clusters is delayed, the assignments of its new clusters are delayed too.
        let clusters = &self.clusters;
        let blocked = |name: &str| {
            clusters.subscribes() && !clusters.has(name) && snapshot.cluster(viewer, name).is_some()
        };
        let nonce = (self.nonces + 1).to_string();
        if let Some(response) = self.endpoints.respond(&context(&blocked), nonce) {
            self.nonces += 1;
            effects.push(Effect::Send(response));
        }
        if let Some(outbound) = &mut self.outbound {
            // Routes and listeners refer to clusters, so they wait for a push of clusters.
            let wait = self.clusters.is_behind();
            let context = Context { now, snapshot, viewer, blocked: &|_| false, wait };
            for subscription in [&mut outbound.listeners, &mut outbound.routes] {
                let nonce = (self.nonces + 1).to_string();
                if let Some(response) = subscription.respond(&context, nonce) {
                    self.nonces += 1;
                    effects.push(Effect::Send(response));
                }
            }
        }
        for (type_url, unserved) in &mut self.unserved {
            let nonce = (self.nonces + 1).to_string();
            if let Some(response) = unserved.respond(type_url, nonce) {
                self.nonces += 1;
                effects.push(Effect::Send(response));
            }
        }
    }

    fn hello(&mut self, session: u64, heartbeat: Duration, group: Option<Arc<Group>>) -> Response {
        let nonce = self.nonce();
        let version = group.as_ref().map_or_else(String::new, |group| group.probe_version.clone());
        let probe = group.and_then(|group| group.group.probe.as_ref().map(WorkloadProbe::to_json));
        let any = wire::probe_config(&Hello { session, heartbeat, probe }.to_json());
        let resource = Resource {
            name: PROBE_NAME.into(),
            version: Version { hash: hash([version.as_bytes()]), endpoints: None },
            any,
        };
        self.hello = Some((nonce.clone(), version.clone()));
        let resources = vec![Arc::new(resource)];
        Response { type_url: TypeUrl::Probe, version, nonce, resources, removed: Vec::new() }
    }

    fn hello_acknowledged(&mut self, nonce: &str, error: Option<String>, effects: &mut Vec<Effect>) {
        let Some((_, version)) = self.hello.take_if(|(sent, _)| sent == nonce) else { return };
        effects.push(match error {
            None => Effect::ProbeAcked(version),
            Some(text) => Effect::ProbeNacked(text),
        });
    }
}

#[cfg(test)]
mod tests;
