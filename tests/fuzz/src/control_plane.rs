//! Feeds arbitrary responses of a control plane, and arbitrary stored configurations, to the agent's xDS
//! proxy.

use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use workload_health::reporter::{HealthStatus, Reporter, ReporterSettings};
use workload_health::{HealthState, WorkloadProbe};
use xds::{Node, Request, Response, Variant, type_url};
use xds_proxy::{Effect, HealthEvent, Input, LastGood, Proxy, ProxySettings};

const IDENTITY: &str = "fuzz";
/// Maximum number of messages per input.
const STEPS: usize = 64;
/// What the model Envoy subscribes to.
const TYPES: [&str; 3] = [type_url::CLUSTER, type_url::LISTENER, "type.googleapis.com/x.Y"];

/// Feeds responses to the proxy. The first byte selects the variant; each response follows as its length
/// in two bytes and its content. A model Envoy accepts every second response. What the proxy sends must be
/// readable, what it keeps must be part of what it received, and the stored form must read back.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn control_plane(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let variant = variant(*first);
    let mut model = Model::new(variant, None);
    model.open_envoy();
    model.step(opened());
    for _ in 0..STEPS {
        let Some((length, after)) = rest.split_at_checked(2) else { break };
        let length = usize::from(u16::from_be_bytes([length[0], length[1]])).min(after.len());
        let (message, after) = after.split_at(length);
        rest = after;
        model.received += message.len();
        model.step(Input::UpstreamResponse(Bytes::copy_from_slice(message)));
    }
    // A lost stream and a new one.
    model.step(Input::UpstreamClosed { is_rejected: false, reason: String::new() });
    model.step(Input::Tick);
    model.step(opened());
    let good = model.proxy.last_good();
    assert!(good.size() <= 4 * model.received, "{} bytes of {}", good.size(), model.received);
    read_back(&good);
}

/// Reads a stored configuration and serves it to an Envoy. The first byte selects whether the rest is the
/// whole file, what follows its checksum, or the same in the uncompressed format of older versions.
///
/// # Panics
/// Panics if a valid one does not read back, or is not served as readable responses.
pub fn xds_cache(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let file = match *first {
        0x80.. => rest.to_vec(),
        0x40.. => with_checksum(b"app-health xDS cache 2\n", rest),
        _ => with_checksum(b"app-health xDS cache 1\n", rest),
    };
    let Ok(good) = LastGood::decode(file, IDENTITY) else { return };
    assert!(good.size() <= 80 << 20, "{} bytes of {}", good.size(), rest.len());
    read_back(&good);
    let mut model = Model::new(variant(*first), Some(good));
    model.step(Input::UpstreamClosed { is_rejected: false, reason: String::new() });
    model.open_envoy();
    model.step(Input::Tick);
}

fn variant(first: u8) -> Variant {
    if first.is_multiple_of(2) { Variant::Sotw } else { Variant::Delta }
}

fn opened() -> Input {
    Input::UpstreamOpened { node: Box::new(Node::default()), server: "fuzz:1".to_owned() }
}

/// Returns a file with this content.
fn with_checksum(format: &[u8], content: &[u8]) -> Vec<u8> {
    [format, &Sha256::digest(content), content].concat()
}

/// Checks that the stored form of a configuration is the same configuration, without secrets.
fn read_back(good: &LastGood) {
    let mut expected = good.clone();
    expected.0.retain(|type_url, _| type_url != type_url::SECRET);
    let file = expected.encode(IDENTITY);
    let again = LastGood::decode(file.clone(), IDENTITY).expect("what was encoded is valid");
    assert_eq!(again.0.keys().collect::<Vec<_>>(), expected.0.keys().collect::<Vec<_>>());
    for (type_url, good) in &expected.0 {
        assert_eq!(again.0[type_url].resources(), good.resources(), "{type_url}");
    }
    assert_eq!(again.encode(IDENTITY), file);
}

/// The proxy, and an Envoy that subscribes to [`TYPES`].
struct Model {
    proxy: Proxy,
    variant: Variant,
    now: Duration,
    received: usize,
    responses: usize,
}

impl Model {
    fn new(variant: Variant, stored: Option<LastGood>) -> Self {
        let settings = ReporterSettings {
            epoch: "e".to_owned(),
            heartbeat: Duration::from_secs(60),
            istio_heartbeat: None,
            final_report_timeout: Duration::from_secs(2),
        };
        let status = HealthStatus {
            verdict: HealthState::new(None).verdict().clone(),
            since: Duration::ZERO,
            last_probe: None,
            interval: None,
            verdict_due: None,
        };
        let reporter = Reporter::new(settings, status);
        let max_age = Some(Duration::from_secs(86_400));
        let settings = ProxySettings {
            identity: IDENTITY.to_owned(),
            max_age,
            variant,
            serves_envoy: true,
            own_types: Vec::new(),
            refuses_remote_wasm: false,
        };
        let proxy = Proxy::new(settings, reporter, stored.map(|good| (good, Duration::from_secs(1))));
        Self { proxy, variant, now: Duration::ZERO, received: 0, responses: 0 }
    }

    fn open_envoy(&mut self) {
        self.step(Input::EnvoyOpened(self.variant));
        for type_url in TYPES {
            let request = Request { type_url: type_url.to_owned(), ..Request::default() };
            self.step(Input::EnvoyRequest(request.encode(self.variant)));
        }
    }

    fn step(&mut self, input: Input) {
        self.now += Duration::from_millis(400);
        let mut inputs = vec![input];
        // Each response causes one request of Envoy, which causes no response.
        for _ in 0..STEPS {
            let Some(input) = inputs.pop() else { return };
            for effect in self.proxy.step(self.now, input, &mut || 0.5) {
                inputs.extend(self.apply(effect));
            }
        }
        assert!(inputs.is_empty(), "the proxy and Envoy go on for ever");
    }

    /// Checks an effect and returns the input that it causes.
    fn apply(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::SendUpstream(message) => {
                Request::parse(&message, self.variant).expect("a request");
            }
            Effect::SendEnvoy(head, tail) => {
                let message = Bytes::from([head, tail].concat());
                let response = Response::parse(&message, self.variant).expect("a response");
                self.responses += 1;
                // A real Envoy cannot read a resource that is no Any.
                let is_readable = response.resources.iter().all(|it| xds::parse_any(&it.any).is_ok());
                let is_accepted = is_readable && self.responses.is_multiple_of(2);
                let request = Request {
                    type_url: response.type_url,
                    version: if is_accepted { response.version } else { String::new() },
                    nonce: response.nonce,
                    error: (!is_accepted).then(|| Request::status(3, "no")),
                    ..Request::default()
                };
                return Some(Input::EnvoyRequest(request.encode(self.variant)));
            }
            Effect::Health(HealthEvent::ValidateProbe { hello, probe }) => {
                let result = probe.map_or(Ok(()), |probe| {
                    WorkloadProbe::parse(&probe).map(drop).map_err(|errors| errors.join("; "))
                });
                return Some(Input::ProbeValidated { hello, result });
            }
            Effect::Store { .. } => {
                let packed = self.proxy.last_good().packed();
                return Some(Input::Stored { packed, result: Ok(()) });
            }
            _ => {}
        }
        None
    }
}
