//! Tests of a stream as tables of inputs and the resulting effects.

mod delta;
mod outbound;
mod pushes;
mod sotw;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::entries::{Presence, Settings, Timestamp, Workload};
use crate::objects::{Config, ExportTo, Key, LastEndpoint, Port, Protocol, Service, Source, Spec};
use crate::snapshot::SnapshotSettings;

/// Adds listeners and routes to a snapshot.
const OUTBOUND: &str = "outbound";

/// Builds a snapshot from a text such as `a:2 b:0+1`: host `a` has two endpoints, host `b` none and
/// one entry that is known to be unhealthy. `a:2!` makes the cluster use HTTP/2, `a@81:2` is on
/// another port than 80, and the word `outbound` adds listeners and routes.
fn snapshot(text: &str, startup_grace: bool, previous: Option<&Snapshot>) -> Snapshot {
    let mut config = Config::default();
    let mut workloads = Vec::new();
    let outbound_listeners =
        text.split_whitespace().any(|word| word == OUTBOUND).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    for word in text.split_whitespace().filter(|word| *word != OUTBOUND) {
        let (host, rest) = word.split_once(':').expect("host:number");
        let (host, number) = host_and_port(host);
        let http2 = rest.ends_with('!');
        let (served, unserved) = rest.trim_end_matches('!').split_once('+').unwrap_or((rest, "0"));
        let count = |text: &str| text.trim_end_matches('!').parse::<u8>().expect("a number");
        let key = Key::new("shop", host);
        let labels = BTreeMap::from([("app".to_owned(), host.to_owned())]);
        let protocol = if http2 { Protocol::Http2 } else { Protocol::Http };
        let port = Port { number, name: "http".to_owned(), protocol, target_port: None };
        let service = Service {
            key: key.clone(),
            hosts: vec![host.to_owned()],
            ports: vec![port],
            source: Source::Selector(labels.clone()),
            export_to: ExportTo::All,
            created: None,
            last_endpoint: None,
        };
        config.services.insert(key, Arc::new(service));
        let (served, unserved) = (count(served), count(unserved));
        for index in 0..served + unserved {
            let address = format!("10.0.0.{index}");
            workloads.push(Workload {
                key: Key::new("shop", format!("{host}-{index}")),
                spec: Arc::new(Spec { address, labels: labels.clone(), ..Spec::default() }),
                served: index < served,
                preservable: true,
                unserved_since: None,
                presence: Presence::Reporting,
                accounted_for: true,
                source: None,
            });
        }
    }
    let (removal_limits, now) = (Settings::default().removal_limits(), Timestamp::default());
    let settings = SnapshotSettings {
        last_endpoint: LastEndpoint::Remove,
        startup_grace,
        outbound_listeners,
        removal_limits,
        now,
    };
    Snapshot::build(&config, &mut workloads.into_iter(), settings, previous)
}

/// Splits `a@81`; the port is 80 by default.
fn host_and_port(text: &str) -> (&str, u16) {
    text.split_once('@').map_or((text, 80), |(host, port)| (host, port.parse().expect("a port")))
}

/// Returns the name of a cluster, of a listener from `lds80`, or of a route configuration from `rds80`.
fn name(text: &str) -> String {
    if let Some(port) = text.strip_prefix("lds") {
        return format!("127.0.0.1_{port}");
    }
    if let Some(port) = text.strip_prefix("rds") {
        return port.to_owned();
    }
    let (host, port) = host_and_port(text);
    if host == "*" { host.to_owned() } else { format!("outbound|{port}||{host}") }
}

/// Builds a request from a text such as `EDS a,b nonce=2 version=x nack=text -c =a@x`: type and
/// names, and for the incremental variant the names to unsubscribe and the versions that the client
/// has.
fn request(text: &str, variant: Variant) -> Request {
    let mut words = text.split_whitespace();
    let type_url = match words.next().expect("a type") {
        "CDS" => TypeUrl::Cluster,
        "EDS" => TypeUrl::Endpoint,
        "LDS" => TypeUrl::Listener,
        "RDS" => TypeUrl::Route,
        "probe" => TypeUrl::Probe,
        "health" => TypeUrl::Health,
        other => TypeUrl::Other(other.to_owned()),
    };
    let (mut nonce, mut version, mut error) = (String::new(), String::new(), None);
    let (mut names, mut unsubscribe, mut initial) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut node = Some(Box::new(Node { namespace: Some("shop".to_owned()), ..Node::default() }));
    for word in words {
        if word == "nodeless" {
            node = None;
        } else if let Some(text) = word.strip_prefix("nonce=") {
            nonce = text.to_owned();
        } else if let Some(text) = word.strip_prefix("version=") {
            version = text.to_owned();
        } else if let Some(text) = word.strip_prefix("nack=") {
            error = Some(text.to_owned());
        } else if let Some(host) = word.strip_prefix('-') {
            unsubscribe.push(name(host));
        } else if let Some((host, version)) = word.strip_prefix('=').and_then(|word| word.split_once('@')) {
            initial.insert(name(host), version.to_owned());
        } else {
            names.extend(word.split(',').map(name));
        }
    }
    let report = (type_url == TypeUrl::Health)
        .then(|| Report::Istio { healthy: error.is_none(), message: error.clone().unwrap_or_default() });
    let subscription = match variant {
        Variant::Sotw => ResourceSubscription::Sotw { version, names },
        Variant::Delta => ResourceSubscription::Delta { subscribe: names, unsubscribe, initial },
    };
    Request { node, type_url, nonce, error, subscription, report }
}

/// Formats an effect as in `EDS#2 a=1 -b`: type, nonce, names with their number of endpoints, and
/// deleted names.
fn shown(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Open(_) => return None,
        Effect::Report(Report::Istio { healthy, .. }) => format!("report {healthy}"),
        Effect::Report(report) => format!("{report:?}"),
        Effect::ProbeAcked(version) => format!("acked {version}"),
        Effect::ProbeNacked(text) => format!("refused {text}"),
        Effect::Close(code, text) => format!("{code:?} {text}"),
        Effect::Event(Event::Nacked { type_url, text, is_new }) => {
            format!("nack {} {text} {is_new}", type_url.short_name())
        }
        Effect::Event(note) => format!("{note:?}"),
        Effect::Send(response) => {
            let short = |name: &str| name.trim_start_matches("outbound|80||").to_owned();
            let resources = response.resources.iter().map(|resource| {
                let endpoints = resource.version.endpoints.map_or_else(String::new, |it| format!("={it}"));
                format!(" {}{endpoints}", short(&resource.name))
            });
            let removed = response.removed.iter().map(|name| format!(" -{}", short(name)));
            let parts: String = resources.chain(removed).collect();
            format!("{}#{}{parts}", response.type_url.short_name(), response.nonce)
        }
    })
}

/// Runs the steps and compares the effects. `@50` sets the time in milliseconds, `serve …` and
/// `startup …` publish another snapshot, and any other step is a request.
fn check(variant: Variant, steps: &[(&str, &str)]) {
    // With and without the previous snapshot, from which a stream knows what changed.
    for follows in [false, true] {
        check_pushes(variant, steps, follows);
    }
}

fn check_pushes(variant: Variant, steps: &[(&str, &str)], follows: bool) {
    let mut stream = AdsStream::new(variant, None);
    let mut now = Duration::ZERO;
    let mut served = snapshot("", false, None);
    for (index, (step, expected)) in steps.iter().enumerate() {
        let input = if let Some(time) = step.strip_prefix('@') {
            now = Duration::from_millis(time.parse().expect("milliseconds"));
            Input::Poll
        } else if let Some(text) = step.strip_prefix("serve") {
            served = snapshot(text, false, Some(&served).filter(|_| follows));
            Input::Poll
        } else if let Some(text) = step.strip_prefix("startup") {
            served = snapshot(text, true, Some(&served).filter(|_| follows));
            Input::Poll
        } else {
            Input::Request(Box::new(request(step, variant)))
        };
        let effects = stream.step(now, input, &served);
        let found: Vec<String> = effects.iter().filter_map(shown).collect();
        assert_eq!(found.join("; "), *expected, "step {index}: {step}");
    }
}

/// Returns the version that a client receives that subscribes to these names.
fn version(variant: Variant, served: &str, names: &str) -> String {
    let mut stream = AdsStream::new(variant, None);
    let request = request(&format!("EDS {names}"), variant);
    let effects =
        stream.step(Duration::ZERO, Input::Request(Box::new(request)), &snapshot(served, false, None));
    let sent = effects.into_iter().find_map(|effect| match effect {
        Effect::Send(response) => Some(response),
        _ => None,
    });
    let sent = sent.expect("an answer");
    match variant {
        Variant::Sotw => sent.version,
        Variant::Delta => sent.resources[0].version.to_string(),
    }
}

#[test]
fn agent_requests() {
    for variant in [Variant::Sotw, Variant::Delta] {
        check(
            variant,
            &[
                ("EDS", ""),
                ("health nodeless", "report true"),
                ("health nodeless nack=503", "report false"),
                // An acknowledgement of an acknowledgement is not a report.
                ("health nodeless nonce=1", ""),
                ("serve a:1", ""),
            ],
        );
        // Istio's agent first requests types that only its Envoy needs.
        check(
            variant,
            &[("SDS", "UnknownType(\"SDS\"); other#1"), ("SDS nonce=1", ""), ("health", "report true")],
        );
    }
}

/// Envoy waits for a response to each subscription before it is ready.
#[test]
fn types_that_are_not_served_get_an_empty_set() {
    let unknown = |text: &str| format!("UnknownType(\"SDS\"); {text}");
    let (first, named) = (unknown("other#1"), unknown("other#1 -a -b"));
    check(
        Variant::Sotw,
        &[
            ("SDS a,b", &first),
            // One response is in flight, so new names get theirs after the acknowledgement.
            ("SDS a,b,c", ""),
            ("SDS a,b,c nonce=1", "other#2"),
            ("SDS c,b,a nonce=2 nack=no", "nack other no true"),
            ("SDS a nonce=2", "other#3"),
        ],
    );
    check(
        Variant::Delta,
        &[
            ("SDS a,b", &named),
            ("SDS c,*", ""),
            ("SDS nonce=1", "other#2 -c"),
            ("SDS nonce=2 -a", ""),
            ("SDS a nonce=2", "other#3 -a"),
        ],
    );
}

/// A client that moves here from another server keeps the resources that it has.
#[test]
fn resources_of_another_server_are_not_removed() {
    let unknown = "UnknownType(\"SDS\")";
    check(Variant::Sotw, &[("SDS version=istio-7", unknown), ("SDS a version=istio-7", "other#1")]);
    check(Variant::Delta, &[("SDS *,a,b =a@istio-7", &format!("{unknown}; other#1 -b"))]);
}

#[test]
fn hellos_are_acknowledged_by_nonce() {
    let served = snapshot("", false, None);
    let mut stream = AdsStream::new(Variant::Sotw, None);
    let mut step = |input| {
        let effects = stream.step(Duration::ZERO, input, &served);
        effects.iter().filter_map(shown).collect::<Vec<_>>().join("; ")
    };
    let request = |text: &str| Input::Request(Box::new(request(text, Variant::Sotw)));
    let hello = |version: &str| {
        let document = serde_json::json!({
            "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup",
            "metadata": {"name": "pay"}, "spec": {"template": {}},
        });
        let group = workload_health::WorkloadGroup::parse(&document).expect("a valid group").value;
        let group = Group { probe_version: version.to_owned(), ..Group::new(Key::new("shop", "pay"), group) };
        Input::Command(StreamCommand::Hello {
            session: 1,
            heartbeat: Duration::from_secs(60),
            probe: Some(Arc::new(group)),
        })
    };
    assert_eq!(step(request("EDS")), "");
    assert_eq!(step(hello("v1")), "probe#1 probe");
    assert_eq!(step(hello("v2")), "probe#2 probe");
    assert_eq!(step(request("probe nonce=1")), "");
    assert_eq!(step(request("probe nonce=2 nack=no")), "refused no");
    assert_eq!(step(request("probe nonce=2")), "");
    assert_eq!(step(hello("v3")), "probe#3 probe");
    assert_eq!(step(request("probe nonce=3")), "acked v3");
    assert_eq!(step(Input::Command(StreamCommand::Ack { epoch: "e".to_owned(), generation: 7 })), "health#4");
}

#[test]
fn invalid_streams_are_closed() {
    let no_node = "InvalidArgument node: must be set in the first request";
    check(Variant::Sotw, &[("CDS nodeless", no_node)]);
    let types: Vec<String> = (0..33).map(|number| format!("T{number}")).collect();
    let expected: Vec<String> = (0..33)
        .map(|number| match number {
            32 => "InvalidArgument type_url: more than 32 types that are not served".to_owned(),
            _ => format!("UnknownType(\"T{number}\"); other#{}", number + 1),
        })
        .collect();
    let steps: Vec<(&str, &str)> =
        types.iter().map(String::as_str).zip(expected.iter().map(String::as_str)).collect();
    check(Variant::Delta, &steps);
}
