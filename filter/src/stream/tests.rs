use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;

use super::{Effect, Orphans, Stream};
use crate::attributes::Attribute;
use crate::attributes::tests::Table;
use crate::config::Config;
use crate::decision::{CalloutSize, ChunkEdit};

const CONFIG: &str = r#"{"podIP":"10.0.0.5","probers":{
    "/app-health/http/livez":{"httpGet":{"port":8080,"path":"/a"},"timeoutSeconds":2},
    "/app-health/tcp/livez":{"tcpSocket":{"port":5432}},
    "/app-health/grpc/livez":{"grpc":{"port":9000}},
    "/app-lifecycle/http/prestopz":{"httpGet":{"port":8080}},
    "/app-lifecycle/grpc/prestopz":{"grpc":{"port":9000}}}}"#;
const HTTP: &str = "/app-health/http/livez";
const TCP: &str = "/app-health/tcp/livez";
const GRPC: &str = "/app-health/grpc/livez";
const HOOK: &str = "/app-lifecycle/http/prestopz";
const GRPC_HOOK: &str = "/app-lifecycle/grpc/prestopz";
const SECOND: u64 = 1_000_000_000;
/// The status of a host call that finds the circuit breaker open.
const INTERNAL_FAILURE: u32 = 10;

fn config() -> Rc<Config> {
    Rc::new(Config::parse(CONFIG.as_bytes()).unwrap_or_else(|error| panic!("{error}")))
}

/// Returns the effect as one line: what the host does, and the recorded result.
fn line(effect: Effect) -> String {
    let header = |headers: &[(&[u8], &[u8])], wanted: &str| {
        let value = headers.iter().find(|(name, _)| *name == wanted.as_bytes()).map(|(_, value)| *value);
        String::from_utf8_lossy(value.unwrap_or(b"-")).into_owned()
    };
    match effect {
        Effect::Continue => "continue".into(),
        Effect::Forward { headers, .. } => format!("forward {}", header(&headers, ":path")),
        Effect::Callout(callout) => {
            let path = header(&callout.headers, ":path");
            format!("callout {} {path} {}ms", callout.cluster, callout.timeout.as_millis())
        }
        Effect::ForwardStatus { status, reason, .. } => format!("status {status} {}", reason.word()),
        Effect::LocalReply { status, probe, reason } => {
            let declared = if probe.is_some() { "" } else { " undeclared" };
            format!("reply {status} {}{declared}", reason.word())
        }
        Effect::Reset { reason, .. } => format!("reset {}", reason.word()),
    }
}

fn request(stream: &mut Stream, config: &Rc<Config>, path: &str) -> String {
    let head = [(Attribute::RequestHeader(":path"), path), (Attribute::RequestHeader(":method"), "GET")];
    line(stream.on_request_headers(config, &Table::new(head), false))
}

/// Returns the number of further probes that the prober admits.
fn free_slots(config: &Rc<Config>, path: &str) -> usize {
    let mut streams: Vec<Stream> = Vec::new();
    for _ in 0..20 {
        let mut stream = Stream::default();
        if matches!(request(&mut stream, config, path).split(' ').next(), Some("forward" | "callout")) {
            streams.push(stream);
        }
    }
    streams.len()
}

#[test]
fn requests() {
    let config = config();
    for (path, expected) in [
        ("/", "continue"),
        ("/app-health/other/livez", "reply 404 unknown_probe undeclared"),
        (HTTP, "forward /a"),
        (TCP, "forward /"),
        (GRPC, "callout app_health_grpc /grpc.health.v1.Health/Check 1000ms"),
        (HOOK, "forward /"),
    ] {
        assert_eq!(request(&mut Stream::default(), &config, path), expected, "{path}");
    }
    let head = [(Attribute::RequestHeader(":path"), HTTP), (Attribute::RequestHeader(":method"), "GET")];
    let body = line(Stream::default().on_request_headers(&config, &Table::new(head), true));
    assert_eq!(body, "reply 400 bad_request");
    let post = [(Attribute::RequestHeader(":path"), HTTP), (Attribute::RequestHeader(":method"), "POST")];
    assert_eq!(
        line(Stream::default().on_request_headers(&config, &Table::new(post), true)),
        "reply 405 method"
    );
    assert_eq!(line(Stream::default().on_request_headers(&config, &Table::new([]), false)), "continue");
}

#[test]
fn a_ninth_probe_in_flight_is_rejected() {
    let config = config();
    for (path, expected) in [(HTTP, "reply 429 busy"), (HOOK, "reset busy")] {
        let mut streams: Vec<Stream> = (0..8).map(|_| Stream::default()).collect();
        for stream in &mut streams {
            assert!(request(stream, &config, path).starts_with("forward"), "{path}");
        }
        assert_eq!(request(&mut Stream::default(), &config, path), expected);
        streams.pop();
        assert_eq!(free_slots(&config, path), 1, "a stream that ends frees its slot");
    }
}

#[test]
fn the_body_of_the_application_is_cleared() {
    let config = config();
    let mut stream = Stream::default();
    request(&mut stream, &config, HTTP);
    assert_eq!(stream.on_response_body(5, false), ChunkEdit::Keep, "no response has been forwarded yet");
    assert_eq!(line(stream.on_response_headers(&Table::response("200", []))), "status 200 ok");
    assert_eq!(stream.on_response_body(5, false), ChunkEdit::Clear);
    assert_eq!(stream.on_response_body(20_000, false), ChunkEdit::Spaces);
    assert_eq!(free_slots(&config, HTTP), 7, "the probe is in flight until its body has ended");
    assert_eq!(
        line(stream.on_response_headers(&Table::response("500", []))),
        "continue",
        "a second response"
    );
    drop(stream);
    assert_eq!(free_slots(&config, HTTP), 8);
}

#[test]
fn responses_of_a_route() {
    let config = config();
    let details =
        (Attribute::CodeDetails, "upstream_reset_before_response_started{remote_connection_failure}");
    let failure = (Attribute::TransportFailure, "delayed_connect_error:_Connection_refused");
    for (path, expected) in [(HTTP, "reply 502 refused"), (HOOK, "reset refused")] {
        let mut stream = Stream::default();
        request(&mut stream, &config, path);
        assert_eq!(line(stream.on_response_headers(&Table::response("503", [details, failure]))), expected);
        assert_eq!(free_slots(&config, path), 8, "the probe has ended");
        assert_eq!(line(stream.on_response_headers(&Table::response("200", []))), "continue", "{path}");
    }
}

#[test]
fn redirects() {
    let config = config();
    let location = |value| [(Attribute::ResponseHeader("location"), value)];
    let mut stream = Stream::default();
    request(&mut stream, &config, HTTP);
    let mut first = Table::response("302", location("/b"));
    first.elapsed = Some(Duration::from_millis(500));
    let effect = line(stream.on_response_headers(&first));
    assert_eq!(effect, "callout app_health_callout_http /b 1500ms");
    stream.callout_started(7);
    let size = CalloutSize { headers: 2, ..CalloutSize::default() };
    let mut second = Table::new([
        (Attribute::CalloutHeader(":status"), "301"),
        (Attribute::CalloutHeader("location"), "https://10.0.0.5:8443/c"),
    ]);
    second.elapsed = Some(Duration::from_millis(1999));
    let effect = line(stream.on_callout_response(size, &second));
    assert_eq!(effect, "callout app_health_callout_https /c 1ms");
    assert!(!stream.awaits(7), "the new callout has no token yet");
    stream.callout_started(8);
    assert!(stream.awaits(8));
    let last = Table::new([(Attribute::CalloutHeader(":status"), "204")]);
    assert_eq!(line(stream.on_callout_response(size, &last)), "reply 204 ok");
    assert_eq!(line(stream.on_callout_response(size, &last)), "continue");

    for (elapsed, unreadable, expected) in [
        (Some(2000), None, "reply 504 timeout"),
        (None, None, "reply 530 configuration"),
        (Some(0), Some(Attribute::ResponseHeader("location")), "reply 528 redirect"),
    ] {
        let mut stream = Stream::default();
        request(&mut stream, &config, HTTP);
        let elapsed = elapsed.map(Duration::from_millis);
        let envoy = Table { elapsed, unreadable, ..Table::response("302", location("/b")) };
        assert_eq!(line(stream.on_response_headers(&envoy)), expected);
    }
}

#[test]
fn responses_to_a_grpc_check() {
    let config = config();
    let serving = Table::new([
        (Attribute::CalloutHeader("content-type"), "application/grpc"),
        (Attribute::CalloutTrailer("grpc-status"), "0"),
        (Attribute::CalloutBody(7), "\0\0\0\0\u{2}\u{8}\u{1}"),
    ]);
    let failed = CalloutSize::default();
    let late = Table { elapsed: Some(Duration::from_millis(950)), ..Table::new([]) };
    let status = Table::new([
        (Attribute::CalloutHeader("content-type"), "application/grpc"),
        (Attribute::CalloutHeader("grpc-status"), "12"),
    ]);
    let (complete, headers) =
        (CalloutSize { headers: 2, body: 7, trailers: 1 }, CalloutSize { headers: 2, ..failed });
    for (size, envoy, probe, hook) in [
        (complete, &serving, "reply 200 ok", "reply 200 ok"),
        (headers, &status, "reply 524 grpc_unimplemented", "reset grpc_unimplemented"),
        (CalloutSize { body: 1, ..headers }, &status, "reply 526 grpc_error", "reset grpc_error"),
        (failed, &late, "reply 504 timeout", "reset grpc_error"),
        (failed, &Table::new([]), "reply 526 grpc_error", "reset grpc_error"),
    ] {
        // A hook has a day.
        for (path, expected) in [(GRPC, probe), (GRPC_HOOK, hook)] {
            let mut stream = Stream::default();
            request(&mut stream, &config, path);
            stream.callout_started(1);
            assert_eq!(line(stream.on_callout_response(size, envoy)), expected, "{path}");
            assert_eq!(free_slots(&config, path), 8, "{path}");
        }
    }
}

#[test]
fn failed_effects_end_the_probe() {
    let config = config();
    for (path, status, expected) in [
        (HTTP, INTERNAL_FAILURE, "reply 530 configuration"),
        (HOOK, 1, "reset configuration"),
        (GRPC, INTERNAL_FAILURE, "reply 503 overloaded"),
        (GRPC, 2, "reply 530 configuration"),
        (GRPC_HOOK, INTERNAL_FAILURE, "reset overloaded"),
    ] {
        let mut stream = Stream::default();
        request(&mut stream, &config, path);
        assert_eq!(line(stream.on_failure(status)), expected, "{path} {status}");
        assert_eq!(line(stream.on_failure(status)), "continue", "the probe has ended already");
        assert_eq!(free_slots(&config, path), 8);
    }
    let mut stream = Stream::default();
    request(&mut stream, &config, HTTP);
    stream.on_response_headers(&Table::response("200", []));
    assert_eq!(line(stream.on_failure(1)), "reply 530 configuration", "the status cannot be replaced");
    assert_eq!(stream.on_response_body(1, false), ChunkEdit::Keep);
}

#[test]
fn orphaned_callouts_count_as_in_flight() {
    let config = config();
    let mut orphans = Orphans::default();
    for token in 1..=3 {
        let mut stream = Stream::default();
        request(&mut stream, &config, GRPC);
        stream.callout_started(token);
        orphans.add(stream, || Some(u64::from(token) * SECOND));
    }
    assert_eq!(free_slots(&config, GRPC), 5);
    orphans.end(3);
    assert_eq!(free_slots(&config, GRPC), 6, "Envoy has reported the end");
    orphans.expire(|| Some(2 * SECOND));
    assert_eq!(free_slots(&config, GRPC), 6, "the timeout has just passed");
    orphans.expire(|| Some(2 * SECOND + 1));
    assert_eq!(free_slots(&config, GRPC), 7);
    orphans.expire(|| None);
    assert_eq!(free_slots(&config, GRPC), 8, "without a clock, no callout counts for ever");
    let mut stream = Stream::default();
    request(&mut stream, &config, HTTP);
    orphans.add(stream, || panic!("no callout"));
    orphans.expire(|| panic!("no orphan"));
    assert_eq!(free_slots(&config, HTTP), 8);
}

proptest! {
    /// Whatever events arrive in whatever order, a stream that has ended holds no slot, and a probe
    /// has at most one result.
    #[test]
    fn any_order_of_events(
        path in prop::sample::select(vec![HTTP, TCP, GRPC, HOOK, GRPC_HOOK, "/", "/app-health/x/livez"]),
        events in prop::collection::vec((0..6u8, 0..3usize, any::<bool>()), 0..12),
    ) {
        let config = config();
        let mut stream = Stream::default();
        let mut orphans = Orphans::default();
        let mut results = usize::from(request(&mut stream, &config, path).starts_with("re"));
        for (event, size, flag) in events {
            let status = ["200", "302", "503"][size];
            let mut envoy = Table::response(status, [(Attribute::ResponseHeader("location"), "/b")]);
            envoy.values.insert(Attribute::CalloutHeader(":status"), status.into());
            let effect = match event {
                0 => line(stream.on_response_headers(&envoy)),
                1 => line(stream.on_callout_response(CalloutSize { headers: size, ..CalloutSize::default() }, &envoy)),
                2 => line(stream.on_failure(u32::try_from(size).expect("small"))),
                3 => { stream.callout_started(7); continue }
                4 => { orphans.end(7); continue }
                _ => { stream.on_response_body(size, flag); continue }
            };
            // A status that could not be forwarded is the only result that another one replaces.
            if event != 2 || !effect.starts_with("re") || results == 0 {
                results += usize::from(["re", "st"].iter().any(|start| effect.starts_with(start)));
            }
        }
        prop_assert!(results <= 1, "{}", results);
        orphans.add(stream, || Some(0));
        orphans.end(7);
        for path in [HTTP, TCP, GRPC, HOOK, GRPC_HOOK] {
            prop_assert_eq!(free_slots(&config, path), 8);
        }
    }
}
