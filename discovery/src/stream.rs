//! One ADS stream as state and step: what a peer asked for, what it has, what it is sent next.
//!
//! Pure: requests, snapshots and the registry's words come in, answers and reports go out; time is an argument, a duration since some start.
//! There is no queue: one answer of each type at a time is unacknowledged, and what is sent next is found by comparing what the peer has
//! with the newest snapshot. Not here: bytes (`crate::xds`), sockets (`server`), whose report acts on what (`entries`).

mod held;
mod subscription;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::entries::{Code, Node, Report};
use crate::message::{Request, Resource, Response, TypeUrl, Variant, Version};
use crate::snapshot::{Snapshot, Viewer, hash};
use crate::xds;

pub use subscription::View;
use subscription::{Context, Outcome, Subscription};

/// Types that one stream may name.
const TYPES: usize = 32;
/// Hellos carry this name.
const PROBE_NAME: &str = "probe";

/// What happened to the stream.
#[derive(Debug)]
pub enum Input {
    /// The peer sent something.
    Request(Box<Request>),
    /// To our agent.
    Hello {
        /// The JSON of the hello.
        hello: Value,
        /// Of its probe.
        version: String,
    },
    /// To our agent: this report is stored.
    Ack {
        /// Of the report.
        epoch: String,
        /// Of the report.
        generation: u64,
    },
    /// There is another snapshot, or [`AdsStream::next_due`] has passed.
    Look,
}

/// What is to be done, in this order.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// The first request came: the registry should know of the stream.
    Open(Box<Node>),
    /// The registry should know this.
    Report(Report),
    /// Our agent took the probe of this version.
    ProbeAcked(String),
    /// Our agent refused the probe; its text.
    ProbeNacked(String),
    /// To the peer.
    Send(Response),
    /// The peer broke a rule: end the stream.
    Close(Code, String),
    /// For log and metrics.
    Note(Note),
}

/// What is worth a count, and once a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Note {
    /// The peer refuses what it was sent.
    Nacked {
        /// Of this type.
        type_url: TypeUrl,
        /// With this text.
        text: String,
        /// Which it did not say the time before.
        is_new: bool,
    },
    /// A type that is never answered, for the first time on this stream.
    UnknownType(String),
    /// The same once more.
    UnknownTypeAgain,
}

/// The state of a stream.
#[derive(Debug)]
pub struct AdsStream {
    /// By the peer's certificate.
    namespace: Option<String>,
    viewer: Option<Viewer>,
    clusters: Subscription,
    endpoints: Subscription,
    /// Nonce and version of the hello that is to be acknowledged.
    hello: Option<(String, String)>,
    types: BTreeSet<TypeUrl>,
    nonces: u64,
}

impl AdsStream {
    /// A stream without a request. `namespace`: by the peer's certificate.
    pub fn new(variant: Variant, namespace: Option<String>) -> Self {
        Self {
            namespace,
            viewer: None,
            clusters: Subscription::new(TypeUrl::Cluster, variant),
            endpoints: Subscription::new(TypeUrl::Endpoint, variant),
            hello: None,
            types: BTreeSet::new(),
            nonces: 0,
        }
    }

    /// Takes one input. After [`Effect::Close`] the stream is not stepped again.
    pub fn step(&mut self, now: Duration, input: Input, snapshot: &Snapshot) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Request(request) => self.request(*request, snapshot, &mut effects),
            Input::Hello { hello, version } => effects.push(Effect::Send(self.hello(&hello, version))),
            Input::Ack { epoch, generation } => {
                let (nonce, version) = (self.nonce(), format!("{epoch}/{generation}"));
                let (type_url, resources, removed) = (TypeUrl::Health, Vec::new(), Vec::new());
                effects.push(Effect::Send(Response { type_url, version, nonce, resources, removed }));
            }
            Input::Look => {}
        }
        self.answer(now, snapshot, &mut effects);
        effects
    }

    /// When to look again although nothing happens.
    pub fn next_due(&self) -> Option<Duration> {
        [self.clusters.due(), self.endpoints.due()].into_iter().flatten().min()
    }

    /// Whether snapshots matter to this stream. Those of agents subscribe to nothing.
    pub fn subscribes(&self) -> bool {
        self.clusters.subscribes() || self.endpoints.subscribes()
    }

    /// What the operator sees of each subscription.
    pub fn views(&self) -> impl Iterator<Item = View> {
        [&self.clusters, &self.endpoints].into_iter().filter(|it| it.subscribes()).map(Subscription::view)
    }

    fn nonce(&mut self) -> String {
        self.nonces += 1;
        self.nonces.to_string()
    }

    fn request(&mut self, request: Request, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        let Request { node, type_url, nonce, error, ask, report } = request;
        let new_type = !self.types.contains(&type_url);
        if new_type {
            if self.types.len() >= TYPES {
                let text = format!("type_url: more than {TYPES} types on one stream");
                return effects.push(Effect::Close(Code::InvalidArgument, text));
            }
            self.types.insert(type_url.clone());
        }
        if self.viewer.is_none() {
            let Some(node) = node else {
                let text = "node: must come with the first request".to_owned();
                return effects.push(Effect::Close(Code::InvalidArgument, text));
            };
            let namespace = self.namespace.clone().or_else(|| node.namespace.clone());
            self.viewer = Some(Viewer { namespace, network: node.network.clone() });
            effects.push(Effect::Open(node));
        }
        let subscription = match type_url {
            TypeUrl::Cluster => &mut self.clusters,
            TypeUrl::Endpoint => &mut self.endpoints,
            TypeUrl::Probe => return self.hello_answered(&nonce, error, effects),
            // With a nonce it would acknowledge our acknowledgement, which says nothing of health.
            TypeUrl::Health if !nonce.is_empty() => return,
            TypeUrl::Health => return effects.extend(report.map(Effect::Report)),
            TypeUrl::Other(_) if !new_type => return effects.push(Effect::Note(Note::UnknownTypeAgain)),
            TypeUrl::Other(text) => return effects.push(Effect::Note(Note::UnknownType(text))),
        };
        match subscription.request(ask, &nonce, error, snapshot.settling()) {
            Outcome::Taken => {}
            Outcome::Nacked { text, is_new } => {
                effects.push(Effect::Note(Note::Nacked { type_url, text, is_new }));
            }
            Outcome::TooMany => {
                let text = format!("resource_names: more than {} or 4 MiB on one stream", xds::NAMES_LIMIT);
                effects.push(Effect::Close(Code::InvalidArgument, text));
            }
        }
    }

    /// Sends what is due: clusters first, since assignments follow their clusters.
    fn answer(&mut self, now: Duration, snapshot: &Snapshot, effects: &mut Vec<Effect>) {
        let Some(viewer) = &self.viewer else { return };
        let context = |blocked| Context { now, snapshot, viewer, blocked };
        let nonce = (self.nonces + 1).to_string();
        if let Some(response) = self.clusters.answer(&context(&|_| false), nonce) {
            self.nonces += 1;
            let pushed = response.resources.iter().map(|resource| resource.name.clone());
            self.endpoints.clusters_pushed(pushed);
            effects.push(Effect::Send(response));
        }
        // While a push of clusters waits for its turn, assignments of clusters that it will bring wait too.
        let clusters = &self.clusters;
        let blocked = |name: &str| {
            clusters.subscribes() && !clusters.has(name) && snapshot.cluster(viewer, name).is_some()
        };
        let nonce = (self.nonces + 1).to_string();
        if let Some(response) = self.endpoints.answer(&context(&blocked), nonce) {
            self.nonces += 1;
            effects.push(Effect::Send(response));
        }
    }

    fn hello(&mut self, hello: &Value, version: String) -> Response {
        let nonce = self.nonce();
        let any = xds::hello(hello);
        let resource = Resource {
            name: PROBE_NAME.into(),
            version: Version { hash: hash([version.as_bytes()]), endpoints: None },
            any,
        };
        self.hello = Some((nonce.clone(), version.clone()));
        let resources = vec![Arc::new(resource)];
        Response { type_url: TypeUrl::Probe, version, nonce, resources, removed: Vec::new() }
    }

    fn hello_answered(&mut self, nonce: &str, error: Option<String>, effects: &mut Vec<Effect>) {
        let Some((_, version)) = self.hello.take_if(|(sent, _)| sent == nonce) else { return };
        effects.push(match error {
            None => Effect::ProbeAcked(version),
            Some(text) => Effect::ProbeNacked(text),
        });
    }
}

#[cfg(test)]
mod tests;
