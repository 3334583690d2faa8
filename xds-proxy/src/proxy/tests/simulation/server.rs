//! A control plane. It fails the test if a nonce reaches it that it has not sent on this stream. Its
//! versions are counters, which begin again at 1 when it restarts.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::json;
use xds::json::{decode_struct, encode_struct};
use xds::type_url::{CLUSTER, HEALTH_INFORMATION, LISTENER, PROBE, is_complete};
use xds::{Node, Request, ResourceRef, ResponseHead, Variant};

use super::super::support::{EDS, OWN, any};

pub(super) type Resources = BTreeMap<&'static str, BTreeMap<String, u64>>;

pub(super) const TYPES: [&str; 3] = [CLUSTER, EDS, LISTENER];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Contents from here on are rejected by Envoy.
pub(super) const REJECTED: u64 = 1000;

/// What the server knows of one type on the current stream.
#[derive(Default)]
struct Subscription {
    names: BTreeSet<String>,
    /// The newest nonce, and whether it is not acknowledged.
    nonce: String,
    is_outstanding: bool,
    sent: BTreeMap<String, u64>,
}

/// The state of one type, of all clients.
#[derive(Default)]
struct Collection {
    contents: BTreeMap<String, u64>,
    /// Versions of the resources.
    versions: BTreeMap<String, u64>,
    version: u64,
}

impl Collection {
    fn set(&mut self, name: &str, content: Option<u64>) {
        let before = match content {
            Some(content) => self.contents.insert(name.to_owned(), content),
            None => self.contents.remove(name),
        };
        if before != content {
            self.version += 1;
            self.versions.insert(name.to_owned(), self.version);
        }
    }
}

pub(super) struct Server {
    variant: Variant,
    random: fastrand::Rng,
    collections: BTreeMap<&'static str, Collection>,
    /// True if the server does not send again what a client holds in the current version.
    trusts_versions: bool,
    /// True if the server sends no response of a type until the previous one is acknowledged.
    waits_for_verdicts: bool,
    /// True if the server sends no versions of resources, as istiod does.
    omits_versions: bool,
    subscriptions: BTreeMap<&'static str, Subscription>,
    has_node: bool,
    /// True if every nonce of a stream is the same.
    repeats_nonces: bool,
    nonces: BTreeSet<String>,
    last_nonce: u64,
    /// True for an app-health server, which sends a hello message and acknowledges reports.
    is_app_health: bool,
    /// Number of the current stream of an app-health server.
    session: u64,
    /// True if the hello message was sent on the current stream.
    has_said_hello: bool,
    /// The resource for the agent itself, and its version.
    own: (u64, u64),
    /// The nonces of the responses with it on the current stream; `None` if the agent has not asked for it.
    own_nonces: Option<BTreeSet<String>>,
    /// The last reported health, and its generation from an agent of this project.
    health: Option<(bool, Option<u64>)>,
}

impl Server {
    pub(super) fn new(variant: Variant, mut random: fastrand::Rng) -> Self {
        let repeats_nonces = random.u32(..8) == 0;
        let (trusts_versions, omits_versions) = (random.u32(..4) > 0, random.u32(..4) == 0);
        let (waits_for_verdicts, is_app_health) = (random.bool(), random.bool());
        let mut server = Self {
            variant,
            random,
            collections: TYPES.map(|of_type| (of_type, Collection::default())).into(),
            trusts_versions,
            waits_for_verdicts,
            omits_versions,
            subscriptions: BTreeMap::new(),
            has_node: false,
            repeats_nonces,
            nonces: BTreeSet::new(),
            last_nonce: 0,
            is_app_health,
            session: 0,
            has_said_hello: false,
            own: (0, 0),
            own_nonces: None,
            health: None,
        };
        server.change(false);
        server
    }

    /// The resources that Envoy must have in the end: endpoints belong to a cluster.
    pub(super) fn resources(&self) -> Resources {
        let contents = |(of_type, found): (&&'static str, &Collection)| (*of_type, found.contents.clone());
        let mut resources: Resources = self.collections.iter().map(contents).collect();
        let clusters = resources[CLUSTER].clone();
        if let Some(endpoints) = resources.get_mut(EDS) {
            endpoints.retain(|name, _| clusters.contains_key(name));
        }
        resources
    }

    pub(super) fn connected(&mut self, variant: Variant) {
        self.disconnected();
        self.variant = variant;
        (self.session, self.has_said_hello) = (self.session + 1, false);
        // Nonces begin again, so a nonce of an old stream would be mistaken for one of this stream.
        self.last_nonce = self.random.u64(0..3);
    }

    pub(super) fn disconnected(&mut self) {
        self.subscriptions.clear();
        self.nonces.clear();
        self.own_nonces = None;
        self.has_node = false;
    }

    /// Starts again: the versions count from 1, and resources may have changed meanwhile.
    pub(super) fn restart(&mut self) {
        for collection in self.collections.values_mut() {
            collection.version = 1;
            collection.versions.values_mut().for_each(|version| *version = 1);
        }
        for _ in 0..self.random.u32(0..3) {
            self.change(true);
        }
    }

    /// Changes resources. `may_break` allows some that Envoy rejects; without it, none stays.
    pub(super) fn change(&mut self, may_break: bool) -> Vec<Bytes> {
        for (of_type, collection) in &mut self.collections {
            let is_changed = |random: &mut fastrand::Rng| !may_break || random.bool();
            for name in NAMES {
                if !is_changed(&mut self.random) {
                    continue;
                }
                let content = self.random.u64(1..20);
                let is_broken = may_break && self.random.u32(..10) == 0;
                // Every cluster has endpoints, because Envoy waits for them.
                if *of_type == EDS || self.random.u32(..4) > 0 {
                    collection.set(name, Some(if is_broken { REJECTED } else { content }));
                } else {
                    collection.set(name, None);
                }
            }
        }
        let is_broken = may_break && self.random.u32(..10) == 0;
        let content = if is_broken { REJECTED } else { self.random.u64(1..20) };
        let is_changed = content != self.own.0;
        self.own = (content, self.own.1 + u64::from(is_changed));
        let mut responses: Vec<Bytes> = TYPES.iter().filter_map(|of_type| self.push(of_type)).collect();
        if is_changed && self.own_nonces.is_some() {
            responses.push(self.respond_own());
        }
        responses
    }

    /// The resource that the agent itself must use in the end.
    pub(super) fn own(&self) -> u64 {
        self.own.0
    }

    fn respond_own(&mut self) -> Bytes {
        let (content, version) = (self.own.0.to_string(), self.own.1.to_string());
        let nonces = self.own_nonces.get_or_insert_default();
        let nonce = format!("own-{}", nonces.len());
        nonces.insert(nonce.clone());
        let any = any("", &content);
        let resource = ResourceRef { name: "", version: &version, any: &any };
        ResponseHead { type_url: OWN, version: &version, nonce: &nonce }.encode(self.variant, [resource], [])
    }

    /// Returns the response to the agent's own request.
    fn own_request(&mut self, request: &Request) -> Option<Bytes> {
        assert!(
            self.subscriptions.contains_key(LISTENER),
            "the agent's request before Envoy's for listeners"
        );
        assert!(request.node.is_none(), "the agent's request has a node");
        match &self.own_nonces {
            None => {
                assert!(request.nonce.is_empty(), "a nonce of another stream");
                Some(self.respond_own())
            }
            Some(nonces) => {
                assert!(nonces.contains(&request.nonce), "the agent asks again, or with an unknown nonce");
                None
            }
        }
    }

    fn push(&mut self, of_type: &'static str) -> Option<Bytes> {
        let subscription = self.subscriptions.get(of_type)?;
        let is_waiting = self.waits_for_verdicts && subscription.is_outstanding;
        if is_waiting || self.wanted(of_type, subscription) == subscription.sent {
            return None;
        }
        Some(self.respond(of_type))
    }

    fn wanted(&self, of_type: &str, subscription: &Subscription) -> BTreeMap<String, u64> {
        let resources = &self.collections[of_type].contents;
        let is_wanted = |name: &String| is_complete(of_type) || subscription.names.contains(name);
        resources
            .iter()
            .filter(|(name, _)| is_wanted(name))
            .map(|(name, content)| (name.clone(), *content))
            .collect()
    }

    fn respond(&mut self, of_type: &'static str) -> Bytes {
        if !self.repeats_nonces || self.last_nonce == 0 {
            self.last_nonce += 1;
        }
        let nonce = self.last_nonce.to_string();
        self.nonces.insert(format!("{of_type} {nonce}"));
        let wanted = self.wanted(of_type, &self.subscriptions[of_type]);
        let subscription = self.subscriptions.get_mut(of_type).unwrap();
        let collection = &self.collections[of_type];
        let version = collection.version.to_string();
        let encode = |(name, content): (&String, &u64)| {
            let version =
                if self.omits_versions { String::new() } else { collection.versions[name].to_string() };
            (name.clone(), version, any(name, &content.to_string()))
        };
        let is_changed = |(name, content): &(&String, &u64)| subscription.sent.get(*name) != Some(*content);
        let sent = wanted.iter().filter(|one| self.variant == Variant::Sotw || is_changed(one));
        let sent: Vec<_> = sent.map(encode).collect();
        let resources = sent.iter().map(|(name, version, any)| ResourceRef { name, version, any });
        let removed = subscription.sent.keys().filter(|name| !wanted.contains_key(*name));
        let head = ResponseHead { type_url: of_type, version: &version, nonce: &nonce };
        let message = head.encode(self.variant, resources, removed.map(String::as_str));
        subscription.sent = wanted;
        subscription.is_outstanding = true;
        subscription.nonce.clone_from(&nonce);
        message
    }

    /// Returns true if the server knows the health of this generation, which is healthy if that is odd
    /// and the agent does not terminate.
    pub(super) fn knows(&self, generation: u64) -> bool {
        match self.health {
            Some((_, Some(known))) => known == generation,
            Some((is_healthy, None)) => !self.is_app_health && is_healthy == (generation % 2 == 1),
            None => false,
        }
    }

    /// Returns the responses to a request.
    pub(super) fn receive(&mut self, message: &Bytes) -> Vec<Bytes> {
        let request = Request::parse(message, self.variant).unwrap();
        match &*request.type_url {
            HEALTH_INFORMATION => self.report(&request).into_iter().collect(),
            PROBE => Vec::new(),
            OWN => self.own_request(&request).into_iter().collect(),
            _ => {
                let mut responses: Vec<Bytes> = self.request(request).into_iter().collect();
                if self.is_app_health && !std::mem::replace(&mut self.has_said_hello, true) {
                    let hello = json!({ "session": self.session, "heartbeatSeconds": 60 });
                    let any = xds::any("", &encode_struct(&hello));
                    let resource = ResourceRef { name: "probe", version: "1", any: &any };
                    let head = ResponseHead { type_url: PROBE, version: "1", nonce: "hello" };
                    responses.push(head.encode(self.variant, [resource], []));
                }
                responses
            }
        }
    }

    /// Records a report. Some acknowledgements are lost.
    fn report(&mut self, request: &Request) -> Option<Bytes> {
        assert!(self.has_node, "a report before the node");
        let report = request
            .node
            .as_ref()
            .map(|node| Node::parse(node, decode_struct).unwrap().metadata["APP_HEALTH_REPORT"].clone());
        let generation = report.as_ref().and_then(|report| report["generation"].as_u64());
        self.health = Some((request.error.is_none(), generation));
        let version = format!("{}/{}", report?["epoch"].as_str().unwrap(), generation?);
        let head = ResponseHead { type_url: HEALTH_INFORMATION, version: &version, nonce: "" };
        (self.random.u32(..8) > 0).then(|| head.encode(self.variant, [], []))
    }

    fn request(&mut self, request: Request) -> Option<Bytes> {
        assert!(
            std::mem::replace(&mut self.has_node, true) || request.node.is_some(),
            "the first request has no node"
        );
        let of_type = *TYPES.iter().find(|of_type| **of_type == request.type_url).unwrap();
        let is_first = !self.subscriptions.contains_key(of_type);
        let subscription = self.subscriptions.entry(of_type).or_default();
        if !request.nonce.is_empty() {
            assert!(
                self.nonces.contains(&format!("{of_type} {}", request.nonce)),
                "a nonce of another stream"
            );
            if request.nonce == subscription.nonce {
                subscription.is_outstanding = false;
            } else if self.variant == Variant::Sotw {
                return None;
            }
        }
        match self.variant {
            Variant::Sotw => {
                let names = request.subscribe.into_iter().collect();
                let is_changed = std::mem::replace(&mut subscription.names, names) != subscription.names;
                let is_known = request.version == self.collections[of_type].version.to_string();
                if is_first && is_known && self.trusts_versions {
                    let subscription = &self.subscriptions[of_type];
                    let sent = self.wanted(of_type, subscription);
                    self.subscriptions.get_mut(of_type).unwrap().sent = sent;
                } else if is_first || is_changed && !subscription.is_outstanding {
                    return (is_complete(of_type) || !subscription.names.is_empty())
                        .then(|| self.respond(of_type));
                }
            }
            Variant::Delta => {
                if is_first {
                    let Collection { contents, versions, .. } = &self.collections[of_type];
                    let known = |(name, version): (String, String)| {
                        let is_current = self.trusts_versions
                            && !self.omits_versions
                            && versions.get(&name).is_some_and(|current| version == current.to_string());
                        let content = contents.get(&name).filter(|_| is_current);
                        (name, content.copied().unwrap_or_default())
                    };
                    subscription.sent = request.initial_versions.into_iter().map(known).collect();
                }
                for name in request.unsubscribe {
                    subscription.names.remove(&name);
                    subscription.sent.remove(&name);
                }
                let is_subscribing = !request.subscribe.is_empty();
                for name in request.subscribe {
                    if !is_first {
                        subscription.sent.remove(&name);
                    }
                    subscription.names.insert(name);
                }
                if is_first || is_subscribing {
                    return Some(self.respond(of_type));
                }
            }
        }
        self.push(of_type)
    }
}
