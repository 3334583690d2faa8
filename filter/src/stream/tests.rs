mod callouts;

use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;

use probe::Reason;

use super::{Orphans, Stream};
use crate::attributes::Attribute;
use crate::attributes::tests::Table;
use crate::config::Config;
use crate::decision::{CalloutSize, ChunkEdit, Decision};

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
/// The probes that one client may have in flight.
const CLIENTS_PERMITS: usize = 10;
const SECOND: u64 = 1_000_000_000;

fn config() -> Rc<Config> {
    Rc::new(Config::parse(CONFIG.as_bytes()).unwrap_or_else(|error| panic!("{error}")))
}

/// Returns the decision as one line: what the host does, and the recorded result.
fn line(decision: Decision) -> String {
    let header = |headers: &[(&[u8], &[u8])], wanted: &str| {
        let value = headers.iter().find(|(name, _)| *name == wanted.as_bytes()).map(|(_, value)| *value);
        String::from_utf8_lossy(value.unwrap_or(b"-")).into_owned()
    };
    match decision {
        Decision::Continue => "continue".into(),
        Decision::Forward { headers, .. } => format!("forward {}", header(&headers, ":path")),
        Decision::Callout(callout) => {
            let path = header(&callout.headers, ":path");
            format!("callout {} {path} {}ms", callout.cluster, callout.timeout.as_millis())
        }
        Decision::ForwardStatus { status, reason } => format!("status {status} {}", reason.word()),
        Decision::LocalReply { status, reason } => format!("reply {status} {}", reason.word()),
        Decision::RefuseHook { client } => format!("refuse {}", String::from_utf8_lossy(&client)),
        Decision::Reset(reason) => format!("reset {}", reason.word()),
    }
}

fn request(stream: &mut Stream, config: &Rc<Config>, path: &str) -> String {
    let head = [(Attribute::RequestHeader(":path"), path), (Attribute::RequestHeader(":method"), "GET")];
    line(stream.on_request_headers(config, &Table::new(head), false))
}

/// Returns the path of the probe for which the result is recorded.
fn declared(stream: &Stream) -> Option<String> {
    stream.probe().map(|probe| probe.plan.path.to_string())
}

/// Returns the number of further probes that the prober admits.
fn free_permits(config: &Rc<Config>, path: &str) -> usize {
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
    for (path, expected, probe) in [
        ("/", "continue", None),
        ("/app-health/other/livez", "reply 404 unknown_probe", None),
        (HTTP, "forward /a", Some(HTTP)),
        (TCP, "forward /", Some(TCP)),
        (GRPC, "callout app_health_grpc /grpc.health.v1.Health/Check 1000ms", Some(GRPC)),
        (HOOK, "forward /", Some(HOOK)),
    ] {
        let mut stream = Stream::default();
        assert_eq!(request(&mut stream, &config, path), expected, "{path}");
        assert_eq!(declared(&stream).as_deref(), probe);
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
    for (path, expected, probe) in [
        (HTTP, "reset bad_request", Some(HTTP)),
        ("/app-health/other/livez", "reset bad_request", None),
        ("/", "continue", None),
    ] {
        let content_type = (Attribute::RequestHeader("content-type"), "application/grpc+proto");
        let head = [
            (Attribute::RequestHeader(":path"), path),
            (Attribute::RequestHeader(":method"), "GET"),
            content_type,
        ];
        let mut stream = Stream::default();
        let found = line(stream.on_request_headers(&config, &Table::new(head), false));
        assert_eq!(found, expected, "{path}");
        assert_eq!(declared(&stream).as_deref(), probe);
    }
}

#[test]
fn hooks_answer_only_their_callers() {
    let limited = CONFIG.replacen('{', r#"{"hookCallers":["10.0.0.1","fd00::1"],"#, 1);
    let limited = Rc::new(Config::parse(limited.as_bytes()).unwrap_or_else(|error| panic!("{error}")));
    for (client, expected) in [
        ("10.0.0.1:4711", "forward /"),
        ("[fd00::1]:4711", "forward /"),
        ("127.0.0.1:4711", "forward /"),
        ("[::1]:4711", "forward /"),
        ("127.0.0.6:4711", "refuse 127.0.0.6:4711"),
        ("10.0.0.10:4711", "refuse 10.0.0.10:4711"),
        ("[fd00::2]:4711", "refuse [fd00::2]:4711"),
        ("nonsense", "refuse nonsense"),
    ] {
        let request = |config: &Rc<Config>, path| {
            let head = [
                (Attribute::RequestHeader(":path"), path),
                (Attribute::RequestHeader(":method"), "GET"),
                (Attribute::SourceAddress, client),
            ];
            line(Stream::default().on_request_headers(config, &Table::new(head), false))
        };
        assert_eq!(request(&limited, HOOK), expected, "{client}");
        assert_eq!(request(&limited, HTTP), "forward /a", "{client}: any client may probe");
        assert_eq!(request(&config(), HOOK), "forward /", "{client}: without a limit");
    }
    assert_eq!(request(&mut Stream::default(), &limited, HOOK), "refuse ");
    assert_eq!(free_permits(&limited, HTTP), CLIENTS_PERMITS);
}

#[test]
fn too_many_probes_in_flight_are_rejected() {
    let config = config();
    for (path, expected) in [(HTTP, "reply 429 busy"), (HOOK, "reset busy")] {
        let mut streams: Vec<Stream> = (0..CLIENTS_PERMITS).map(|_| Stream::default()).collect();
        for stream in &mut streams {
            assert!(request(stream, &config, path).starts_with("forward"), "{path}");
        }
        assert_eq!(request(&mut Stream::default(), &config, path), expected);
        streams.pop();
        assert_eq!(free_permits(&config, path), 1, "a stream that ends frees its permit");
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
    assert_eq!(
        free_permits(&config, HTTP),
        CLIENTS_PERMITS - 1,
        "the probe is in flight until its body has ended"
    );
    assert_eq!(
        line(stream.on_response_headers(&Table::response("500", []))),
        "continue",
        "a second response"
    );
    drop(stream);
    assert_eq!(free_permits(&config, HTTP), CLIENTS_PERMITS);
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
        assert_eq!(free_permits(&config, path), CLIENTS_PERMITS, "the probe has ended");
        assert_eq!(declared(&stream).as_deref(), Some(path), "its result can still be recorded");
        assert_eq!(line(stream.on_response_headers(&Table::response("200", []))), "continue", "{path}");
    }
}

#[test]
fn failed_effects_end_the_probe() {
    let config = config();
    for (path, reason, expected) in [
        (HTTP, Reason::Configuration, "reply 530 configuration"),
        (HOOK, Reason::Configuration, "reset configuration"),
        (GRPC, Reason::Overloaded, "reply 503 overloaded"),
        (GRPC_HOOK, Reason::Overloaded, "reset overloaded"),
    ] {
        let mut stream = Stream::default();
        request(&mut stream, &config, path);
        assert_eq!(line(stream.fail(reason)), expected, "{path}");
        assert_eq!(line(stream.fail(reason)), "continue", "the probe has ended already");
        assert_eq!(free_permits(&config, path), CLIENTS_PERMITS);
    }
    let mut stream = Stream::default();
    request(&mut stream, &config, HTTP);
    stream.on_response_headers(&Table::response("200", []));
    let failed = line(stream.fail(Reason::Configuration));
    assert_eq!(failed, "reply 530 configuration", "the status cannot be replaced");
    assert_eq!(stream.on_response_body(1, false), ChunkEdit::Keep);
}

proptest! {
    /// Whatever events arrive in whatever order, a stream that has ended holds no permit, and a probe
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
                2 => line(stream.fail([Reason::Configuration, Reason::Overloaded][size % 2])),
                3 => { stream.callout_started(7); continue }
                4 => { orphans.expire(|| SECOND); continue }
                _ => { stream.on_response_body(size, flag); continue }
            };
            // A status that could not be forwarded is the only result that another one replaces.
            if event != 2 || !effect.starts_with("re") || results == 0 {
                results += usize::from(["re", "st"].iter().any(|start| effect.starts_with(start)));
            }
        }
        prop_assert!(results <= 1, "{}", results);
        orphans.add(stream, || 0);
        orphans.expire(|| u64::MAX);
        for path in [HTTP, TCP, GRPC, HOOK, GRPC_HOOK] {
            prop_assert_eq!(free_permits(&config, path), CLIENTS_PERMITS);
        }
    }
}
