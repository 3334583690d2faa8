//! Messages, and a proxy whose effects a test reads.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use workload_health::reporter::{self, HealthStatus, Reporter, ReporterSettings};
use workload_health::{HealthReason, State, Verdict};
use xds::type_url::CLUSTER;
use xds::{Node, Request, ResourceRef, Response, ResponseHead, put_bytes};

use super::super::*;
use crate::last_good::{LastGood, StoredResource};

pub(super) use xds::type_url::ENDPOINT as EDS;
pub(super) const BOTH: [Variant; 2] = [Variant::Sotw, Variant::Delta];
pub(super) const HOUR: Duration = Duration::from_secs(3600);
/// A type of the agent itself.
pub(super) const OWN: &str = "type.googleapis.com/x.Own";
pub(super) const IDENTITY: &str = "node-1";
pub(super) const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// Encodes a resource with a name and a content.
pub(super) fn any(name: &str, content: &str) -> Bytes {
    let mut value = BytesMut::new();
    put_bytes(&mut value, 1, name.as_bytes());
    put_bytes(&mut value, 2, content.as_bytes());
    let mut any = BytesMut::new();
    put_bytes(&mut any, 1, b"type");
    put_bytes(&mut any, 2, &value);
    any.freeze()
}

/// Returns the content of a resource that [`any`] has encoded.
pub(super) fn content_of(any: &Bytes) -> String {
    let (_, value) = xds::parse_any(any).unwrap();
    xds::fields(&value).last().unwrap().unwrap().text().unwrap()
}

/// A request as Envoy sends it.
pub(super) fn request(
    variant: Variant,
    type_url: &str,
    names: &[&str],
    version: &str,
    nonce: &str,
) -> Request {
    Request {
        type_url: type_url.to_owned(),
        version: if variant == Variant::Sotw { version.to_owned() } else { String::new() },
        nonce: nonce.to_owned(),
        node: Some(Bytes::from_static(b"\x0a\x01n")),
        subscription: Request::subscription_to(names.iter().copied()),
        ..Request::default()
    }
}

/// A response as a control plane sends it.
pub(super) fn response(
    variant: Variant,
    type_url: &str,
    resources: &[(&str, &str)],
    version: &str,
    nonce: &str,
) -> Bytes {
    let anys: Vec<Bytes> = resources.iter().map(|(name, content)| any(name, content)).collect();
    let resources = resources.iter().zip(&anys);
    let resources = resources.map(|((name, version), any)| ResourceRef { name, version, any });
    ResponseHead { type_url, version, nonce }.encode(variant, resources, [])
}

/// An incremental response with one resource without a version, as istiod sends it.
pub(super) fn without_version(type_url: &str, (name, content): (&str, &str), nonce: &str) -> Bytes {
    let any = any(name, content);
    let resource = ResourceRef { name, version: "", any: &any };
    ResponseHead { type_url, version: "v", nonce }.encode(Variant::Delta, [resource], [])
}

/// Names of resources without a version that a control plane could know.
pub(super) fn unversioned(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "app-health:unknown".to_owned())).collect()
}

/// A proxy, and the effects of the last step.
pub(super) struct Tested {
    pub(super) proxy: Proxy,
    pub(super) variant: Variant,
    pub(super) now: Duration,
    pub(super) effects: Vec<Effect>,
    /// Generation of the health status.
    pub(super) generation: u64,
}

/// The health of a workload in its generation, which is healthy if that is odd.
pub(super) fn status(generation: u64) -> HealthStatus {
    let (state, reason) = match generation % 2 {
        1 => (State::Healthy, HealthReason::ProbeSucceeded),
        _ => (State::Unhealthy, HealthReason::HttpStatus),
    };
    HealthStatus {
        verdict: Verdict { state, reason, message: reason.to_string(), generation },
        since: Duration::ZERO,
        last_probe: None,
        interval: None,
        verdict_due: None,
    }
}

/// The status of an agent that terminates.
pub(super) fn terminating(generation: u64) -> HealthStatus {
    let mut status = status(generation);
    (status.verdict.reason, status.verdict.state) = (HealthReason::Terminating, State::Unhealthy);
    status
}

/// A reporter that reports the first generation.
pub(super) fn reporter() -> Reporter {
    let settings = ReporterSettings {
        epoch: "epoch".to_owned(),
        heartbeat: Duration::from_secs(60),
        istio_heartbeat: None,
        final_report_timeout: Duration::from_secs(2),
    };
    Reporter::new(settings, status(1))
}

/// A reporter that has finished, so that only Envoy needs streams.
fn finished() -> Reporter {
    let mut reporter = reporter();
    reporter.step(Duration::ZERO, reporter::Input::Shutdown, &mut || 0.5);
    reporter.step(Duration::from_secs(2), reporter::Input::Tick, &mut || 0.5);
    reporter
}

pub(super) fn settings(variant: Variant, serves_envoy: bool) -> ProxySettings {
    ProxySettings {
        identity: IDENTITY.to_owned(),
        max_age: Some(MAX_AGE),
        variant,
        serves_envoy,
        own_types: Vec::new(),
        refuses_remote_wasm: false,
    }
}

/// The node of the agent.
pub(super) fn agent() -> Box<Node> {
    let text = str::to_owned;
    Box::new(Node { id: text("agent"), program: text("agent"), version: text("1"), ..Node::default() })
}

impl Tested {
    /// Without health reports.
    pub(super) fn new(variant: Variant) -> Self {
        Self::with_stored(variant, None)
    }

    pub(super) fn with_stored(variant: Variant, stored: Option<(LastGood, Duration)>) -> Self {
        Self::of(Proxy::new(settings(variant, true), finished(), stored), variant)
    }

    /// An agent that subscribes to a type of its own, with what it has stored.
    pub(super) fn subscribing(variant: Variant, stored: Option<(LastGood, Duration)>) -> Self {
        let settings = ProxySettings { own_types: vec![OWN.to_owned()], ..settings(variant, true) };
        Self::of(Proxy::new(settings, finished(), stored), variant)
    }

    /// An agent that stores nothing.
    pub(super) fn without_cache(variant: Variant) -> Self {
        let settings = ProxySettings { max_age: None, ..settings(variant, true) };
        Self::of(Proxy::new(settings, finished(), None), variant)
    }

    /// An agent that refuses WebAssembly from other machines.
    pub(super) fn refusing(variant: Variant) -> Self {
        let settings = ProxySettings { refuses_remote_wasm: true, ..settings(variant, true) };
        Self::of(Proxy::new(settings, finished(), None), variant)
    }

    /// With health reports.
    pub(super) fn reporting(variant: Variant, serves_envoy: bool) -> Self {
        Self::of(Proxy::new(settings(variant, serves_envoy), reporter(), None), variant)
    }

    fn of(proxy: Proxy, variant: Variant) -> Self {
        Self { proxy, variant, now: Duration::ZERO, effects: Vec::new(), generation: 1 }
    }

    pub(super) fn step(&mut self, input: Input) -> &[Effect] {
        self.effects = self.proxy.step(self.now, input, &mut || 0.5);
        &self.effects
    }

    pub(super) fn open(&mut self) {
        self.step(Input::EnvoyOpened(self.variant));
        assert_eq!(self.effects, [Effect::Connect]);
        self.open_upstream();
    }

    pub(super) fn open_upstream(&mut self) {
        self.step(Input::UpstreamOpened { node: agent(), server: "discovery:15012".to_owned() });
    }

    /// Loses the upstream stream and lets time pass until the next attempt.
    pub(super) fn lose_upstream(&mut self) {
        self.step(Input::UpstreamClosed { is_rejected: false, reason: "reset".to_owned() });
        self.tick_until(|effect| *effect == Effect::Connect);
    }

    /// Lets time pass until an effect that matches.
    pub(super) fn tick_until(&mut self, is_wanted: impl Fn(&Effect) -> bool) {
        while !self.effects.iter().any(&is_wanted) {
            self.now = self.proxy.next_due().expect("something is due").max(self.now);
            self.step(Input::Tick);
        }
    }

    /// Lets time pass until then.
    pub(super) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        self.effects.clear();
        while let Some(due) = self.proxy.next_due().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            let now = self.now;
            self.effects.extend(self.proxy.step(now, Input::Tick, &mut || 0.5));
        }
        self.now = until;
    }

    pub(super) fn envoy(&mut self, type_url: &str, names: &[&str], version: &str, nonce: &str) {
        let request = request(self.variant, type_url, names, version, nonce);
        self.step(Input::EnvoyRequest(request.encode(self.variant)));
    }

    pub(super) fn server(&mut self, type_url: &str, resources: &[(&str, &str)], version: &str, nonce: &str) {
        let response = response(self.variant, type_url, resources, version, nonce);
        self.step(Input::UpstreamResponse(response));
    }

    /// Requests that the last step sends to the control plane.
    pub(super) fn sent(&self) -> Vec<Request> {
        let sent = self.effects.iter().filter_map(|effect| match effect {
            Effect::SendUpstream(message) => Some(Request::parse(message, self.variant).unwrap()),
            _ => None,
        });
        sent.collect()
    }

    /// Responses that the last step sends to Envoy.
    pub(super) fn delivered(&self) -> Vec<Response> {
        let delivered = self.effects.iter().filter_map(|effect| match effect {
            Effect::SendEnvoy(message, suffix) => {
                let message: Bytes = [&**message, &**suffix].concat().into();
                Some(Response::parse(&message, self.variant).unwrap())
            }
            _ => None,
        });
        delivered.collect()
    }

    /// Delivers a response to Envoy, which accepts it. Returns the nonce.
    pub(super) fn accepted(
        &mut self,
        type_url: &str,
        names: &[&str],
        resources: &[(&str, &str)],
        version: &str,
        nonce: &str,
    ) -> String {
        self.server(type_url, resources, version, nonce);
        let ours = self.delivered()[0].nonce.clone();
        let names = if self.variant == Variant::Sotw { names } else { &[] };
        self.envoy(type_url, names, version, &ours);
        ours
    }

    /// Returns what is stored, after it was encoded and decoded.
    pub(super) fn stored(&self) -> LastGood {
        let file = self.proxy.last_good().encode(IDENTITY);
        LastGood::decode(file, IDENTITY).unwrap()
    }

    /// Returns the reasons why types are not stored, in the order of their types.
    pub(super) fn not_stored(&self) -> Vec<&'static str> {
        let view = self.proxy.view(self.now);
        let reasons: Vec<_> = view.types.iter().filter_map(|of_type| of_type.not_stored).collect();
        assert_eq!(view.not_stored, reasons.len());
        reasons
    }

    /// Returns a proxy after a restart of the agent, with what this one has stored `age` ago.
    pub(super) fn restarted(&self, age: Duration) -> Self {
        Self::with_stored(self.variant, Some((self.stored(), age)))
    }
}

/// Returns the stored resource with this name.
pub(super) fn resource(good: &LastGood, type_url: &str, name: &str) -> StoredResource {
    let resources = good.0[type_url].resources();
    let found = resources.into_iter().find(|(of, _)| of == name);
    found.map(|(_, stored)| stored).expect("it is stored")
}

/// A proxy whose Envoy has accepted one cluster and its endpoints.
pub(super) fn configured(variant: Variant) -> Tested {
    configure(Tested::new(variant))
}

pub(super) fn configure(mut tested: Tested) -> Tested {
    tested.open();
    tested.envoy(CLUSTER, &[], "", "");
    tested.accepted(CLUSTER, &[], &[("a", "1")], "c1", "n1");
    tested.envoy(EDS, &["a"], "", "");
    tested.accepted(EDS, &["a"], &[("a", "1")], "e1", "n2");
    tested
}
