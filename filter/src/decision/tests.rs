use std::time::Duration;

use probe::{Reason, Redirect};
use proptest::prelude::*;

use super::{
    Answer, Ask, BLANKS, Body, CallResult, Chunk, Decision, Hop, RequestHead, ResponseHead, Target, ask, hop,
    on_check, on_hop, on_request, on_response, parse_status, target,
};
use crate::config::Config;
use crate::plan::{Action, Plan};

const CONFIG: &str = r#"{"podIP":"10.0.0.5","probers":{
    "/app-health/http/livez":{"httpGet":{"port":8080,"path":"/a"},"timeoutSeconds":2},
    "/app-health/https/livez":{"httpGet":{"port":8443,"scheme":"HTTPS"}},
    "/app-health/tcp/livez":{"tcpSocket":{"port":5432}},
    "/app-health/grpc/livez":{"grpc":{"port":9000},"timeoutSeconds":3},
    "/app-health/grpc-tls/livez":{"grpc":{"port":9001,"mode":"TLS"}},
    "/app-health/app/livez":{"tcpSocket":{"port":1}},
    "/app-health/app-2/livez":{"tcpSocket":{"port":2}},
    "/app-lifecycle/http/prestopz":{"httpGet":{"port":8080}},
    "/app-lifecycle/tcp/prestopz":{"tcpSocket":{"port":5432}},
    "/app-lifecycle/grpc/prestopz":{"grpc":{"port":9000}}}}"#;
const HTTP: &str = "/app-health/http/livez";
const HTTPS: &str = "/app-health/https/livez";
const TCP: &str = "/app-health/tcp/livez";
const GRPC: &str = "/app-health/grpc/livez";
const HOOK: &str = "/app-lifecycle/http/prestopz";
const TCP_HOOK: &str = "/app-lifecycle/tcp/prestopz";
const GRPC_HOOK: &str = "/app-lifecycle/grpc/prestopz";

fn config() -> Config {
    Config::parse(CONFIG.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn plan<'a>(config: &'a Config, path: &str) -> &'a Plan {
    &config.probe(path.as_bytes()).expect(path).plan
}

fn reply(reason: Reason) -> Answer {
    Answer::Reply { status: reason.status(), reason }
}

fn stream(status: u16, reason: Reason) -> Answer {
    Answer::Stream { status, reason }
}

#[test]
fn targets() {
    let config = config();
    for (path, expected) in [
        ("/app-health/http/livez", "/app-health/http/livez"),
        ("/app-health/http/livez?x=/app-health/tcp/livez", "/app-health/http/livez"),
        ("/app-health/http/livez?", "/app-health/http/livez"),
        ("/app-health/http/livez??", "/app-health/http/livez"),
        ("/app-health/app/livez", "/app-health/app/livez"),
        ("/app-health/app-2/livez", "/app-health/app-2/livez"),
        ("/app-lifecycle/http/prestopz", "/app-lifecycle/http/prestopz"),
        // Below our prefixes, and not declared.
        ("/app-health/", "unknown"),
        ("/app-health/http/readyz", "unknown"),
        ("/app-health/ap/livez", "unknown"),
        ("/app-health/app-22/livez", "unknown"),
        ("/app-health/app-2/livez/", "unknown"),
        ("/app-health/http/livez/", "unknown"),
        ("/app-health/http/LIVEZ", "unknown"),
        ("/app-health/http/livez%3F", "unknown"),
        ("/app-health/http%2flivez", "unknown"),
        ("/app-health/http/livez#x", "unknown"),
        ("/app-health/http/livez;x", "unknown"),
        ("/app-health/http\\livez", "unknown"),
        ("/app-health/./http/livez", "unknown"),
        ("/app-health/x/../http/livez", "unknown"),
        ("/app-health//http/livez", "unknown"),
        ("/app-health/http/livez\0", "unknown"),
        ("/app-health/?/app-health/http/livez", "unknown"),
        ("/app-lifecycle/http/livez", "unknown"),
        ("/app-health/http/prestopz", "unknown"),
        // Not ours.
        ("/app-health", "pass"),
        ("/app-health?x", "pass"),
        ("/app-healthz/http/livez", "pass"),
        ("/App-health/http/livez", "pass"),
        ("//app-health/http/livez", "pass"),
        ("/./app-health/http/livez", "pass"),
        ("/app%2Dhealth/http/livez", "pass"),
        ("/%61pp-health/http/livez", "pass"),
        (" /app-health/http/livez", "pass"),
        ("http://pod/app-health/http/livez", "pass"),
        ("app-health/http/livez", "pass"),
        ("/?/app-health/http/livez", "pass"),
        ("/stats/prometheus", "pass"),
        ("/", "pass"),
        ("*", "pass"),
        ("?", "pass"),
        ("", "pass"),
    ] {
        let found = match target(&config, path.as_bytes()) {
            Target::Pass => "pass".into(),
            Target::Unknown => "unknown".into(),
            Target::Declared(probe) => probe.plan.path.to_string(),
        };
        assert_eq!(found, expected, "{path:?}");
    }
    assert!(matches!(target(&config, b"/app-health/\xff/livez"), Target::Unknown));
}

const HEAD: RequestHead =
    RequestHead { method: Some(b"GET"), user_agent: None, has_body: false, has_place: true };

#[test]
fn requests_that_are_answered_in_place() {
    let config = config();
    for (path, head, expected) in [
        (HTTP, RequestHead { method: Some(b"POST"), ..HEAD }, reply(Reason::Method)),
        (HTTP, RequestHead { method: Some(b"HEAD"), ..HEAD }, reply(Reason::Method)),
        (HTTP, RequestHead { method: Some(b"get"), ..HEAD }, reply(Reason::Method)),
        (HTTP, RequestHead { method: Some(b"GET "), ..HEAD }, reply(Reason::Method)),
        (HTTP, RequestHead { method: Some(b"CONNECT"), ..HEAD }, reply(Reason::Method)),
        (HTTP, RequestHead { method: None, ..HEAD }, reply(Reason::Method)),
        (TCP, RequestHead { has_body: true, ..HEAD }, reply(Reason::BadRequest)),
        (GRPC, RequestHead { has_place: false, ..HEAD }, reply(Reason::Busy)),
        // The order of the checks.
        (
            HTTP,
            RequestHead { method: Some(b"PUT"), has_body: true, has_place: false, ..HEAD },
            reply(Reason::Method),
        ),
        (HTTP, RequestHead { has_body: true, has_place: false, ..HEAD }, reply(Reason::BadRequest)),
        // An answer would be a success of the hook.
        (HOOK, RequestHead { has_place: false, ..HEAD }, Answer::Reset(Reason::Busy)),
    ] {
        match on_request(&config, plan(&config, path), head) {
            Decision::Answer(answer) => assert_eq!(answer, expected, "{path} {head:?}"),
            other => panic!("{path} {head:?}: {other:?}"),
        }
    }
}

#[test]
fn requests_that_are_sent_on() {
    let config = config();
    let kubelet = RequestHead { user_agent: Some(b"kube-probe/1.36"), ..HEAD };
    for (path, destination, user_agent) in [
        (HTTP, "10.0.0.5:8080", Some("kube-probe/1.36")),
        (HTTPS, "10.0.0.5:8443", Some("kube-probe/1.36")),
        (TCP, "10.0.0.5:5432", None),
        (HOOK, "10.0.0.5:8080", Some("kube-probe/1.36")),
    ] {
        let Decision::Forward { state, head } = on_request(&config, plan(&config, path), kubelet) else {
            panic!("{path}")
        };
        assert_eq!(state, crate::wire::destination_state(destination), "{path}");
        assert_eq!(head, plan(&config, path).head(b"kube-probe/1.36"), "{path}");
        let sent = head.iter().find(|(name, _)| *name == b"user-agent").map(|(_, value)| *value);
        assert_eq!(sent, user_agent.map(str::as_bytes), "{path}");
    }
    for (path, cluster, seconds) in
        [(GRPC, "app_health_grpc", 3), ("/app-health/grpc-tls/livez", "app_health_grpc_tls", 1)]
    {
        let foreign = RequestHead { user_agent: Some(b"curl/8"), ..HEAD };
        let Decision::Call(call) = on_request(&config, plan(&config, path), foreign) else {
            panic!("{path}")
        };
        assert_eq!(
            (call.cluster, call.timeout, call.body),
            (cluster, Duration::from_secs(seconds), &b"\0\0\0\0\0"[..])
        );
        assert_eq!(call.head, plan(&config, path).head(b"kube-probe/app-health"), "{path}");
    }
}

#[test]
fn what_is_read_of_an_answer() {
    let config = config();
    for (path, status, expected) in [
        (HTTP, 200, Ask::Nothing),
        (HTTP, 0, Ask::Nothing),
        (HTTP, 101, Ask::Nothing),
        (HTTP, 300, Ask::Nothing),
        (HTTP, 301, Ask::Location),
        (HTTP, 302, Ask::Location),
        (HTTP, 303, Ask::Location),
        (HTTP, 304, Ask::Nothing),
        (HTTP, 305, Ask::Nothing),
        (HTTP, 306, Ask::Nothing),
        (HTTP, 307, Ask::Location),
        (HTTPS, 308, Ask::Location),
        (HTTP, 399, Ask::Nothing),
        (HTTP, 400, Ask::Cause),
        (HTTP, 599, Ask::Cause),
        (HTTP, 999, Ask::Cause),
        (TCP, 200, Ask::Nothing),
        (TCP, 302, Ask::Nothing),
        (TCP, 503, Ask::Cause),
    ] {
        assert_eq!(ask(plan(&config, path), status), expected, "{path} {status}");
    }
}

#[test]
fn answers_of_the_application() {
    let config = config();
    let check = |path: &str, status, location: Option<&str>, expected: Answer| {
        let details = if status < 400 { b"".as_slice() } else { b"via_upstream" };
        let head = ResponseHead { status, location: location.map(str::as_bytes), details, failure: b"" };
        assert_eq!(on_response(&config, plan(&config, path), head), expected, "{path} {status} {location:?}");
    };
    for path in [HTTP, HTTPS, HOOK] {
        for status in [200, 201, 204, 299] {
            check(path, status, None, stream(status, Reason::Ok));
        }
        for status in [400, 404, 429, 500, 503, 504, 530, 599] {
            check(path, status, None, stream(status, Reason::Application));
        }
        for status in [300, 301, 304, 305, 306, 308, 399] {
            check(path, status, None, stream(200, Reason::OkRedirect));
        }
        check(path, 302, Some("http://other/x"), stream(200, Reason::OkRedirect));
        check(path, 302, Some(""), stream(200, Reason::OkRedirect));
    }
    for status in [0, 100, 101, 103, 199, 600, 999] {
        check(HTTP, status, None, reply(Reason::Protocol));
        check(HOOK, status, None, Answer::Reset(Reason::Protocol));
    }
    check(HTTP, 302, Some("/%zz"), reply(Reason::Redirect));
    check(HTTP, 302, Some("http://10.0.0.5:15020/x"), reply(Reason::Redirect));
    check(HOOK, 302, Some("/%zz"), Answer::Reset(Reason::Redirect));
    check(TCP, 200, None, reply(Reason::Ok));
    check(TCP_HOOK, 200, None, reply(Reason::Ok));
    for status in [0, 204, 302, 404, 503] {
        check(TCP, status, None, reply(Reason::Configuration));
    }
}

#[test]
fn answers_of_envoy() {
    let config = config();
    let reset = |reset: &str| format!("upstream_reset_before_response_started{{{reset}}}");
    for (status, details, failure, reason) in [
        (
            503,
            reset("remote_connection_failure"),
            "delayed_connect_error:_Connection_refused",
            Reason::Refused,
        ),
        (503, reset("remote_connection_failure"), "TLS_error:|1", Reason::Tls),
        (503, reset("connection_termination"), "", Reason::Closed),
        (502, reset("protocol_error"), "", Reason::Protocol),
        (503, reset("overflow"), "", Reason::Overloaded),
        (504, "response_timeout".into(), "", Reason::Timeout),
        (404, "route_not_found".into(), "", Reason::Configuration),
        (503, String::new(), "", Reason::Configuration),
    ] {
        let (details, failure) = (details.as_bytes(), failure.as_bytes());
        let head = ResponseHead { status, location: None, details, failure };
        // A tcp connection that was closed had stood.
        let (tcp, tcp_hook) = match reason {
            Reason::Closed => (reply(Reason::Ok), reply(Reason::Ok)),
            reason => (reply(reason), Answer::Reset(reason)),
        };
        for (path, expected) in [
            (HTTP, reply(reason)),
            (HTTPS, reply(reason)),
            (HOOK, Answer::Reset(reason)),
            (TCP, tcp),
            (TCP_HOOK, tcp_hook),
        ] {
            assert_eq!(on_response(&config, plan(&config, path), head), expected, "{path} {head:?}");
        }
    }
}

#[test]
fn redirects_become_callouts_with_the_time_that_remains() {
    let config = config();
    let second = Duration::from_secs(1);
    for (path, location, elapsed, expected) in [
        (
            HTTP,
            "/b?c",
            Duration::ZERO,
            Some(("app_health_callout_http", "/b?c", "10.0.0.5:8080", 2 * second)),
        ),
        (HTTP, "http://10.0.0.5/", second, Some(("app_health_callout_http", "/", "10.0.0.5:80", second))),
        (
            HTTP,
            "https://10.0.0.5:8443/",
            Duration::from_micros(1_999_000),
            Some(("app_health_callout_https", "/", "10.0.0.5:8443", Duration::from_millis(1))),
        ),
        (
            HTTPS,
            "//10.0.0.5",
            Duration::ZERO,
            Some(("app_health_callout_https", "/", "10.0.0.5:443", second)),
        ),
        (HTTP, "/b", Duration::from_micros(1_999_001), None),
        (HTTP, "/b", 2 * second, None),
        (HTTP, "/b", 3 * second, None),
    ] {
        let plan = plan(&config, path);
        let head =
            ResponseHead { status: 302, location: Some(location.as_bytes()), ..ResponseHead::default() };
        let Answer::Follow(request) = on_response(&config, plan, head) else { panic!("{location}") };
        let next = Hop::new(&config, *request, 1);
        assert_eq!(next.requests(), 2);
        let call = hop(&config, &next, b"kube-probe/1.36", plan.timeout, elapsed);
        let found = call.as_ref().map(|call| {
            let header = |name: &str| {
                let value =
                    call.head.iter().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| *value);
                String::from_utf8_lossy(value.unwrap_or(b"absent")).into_owned()
            };
            assert_eq!((header(":method"), header("user-agent")), ("GET".into(), "kube-probe/1.36".into()));
            assert!(call.body.is_empty());
            (call.cluster, header(":path"), header("x-app-health-dst"), call.timeout)
        });
        let expected =
            expected.map(|(cluster, path, to, left)| (cluster, path.to_owned(), to.to_owned(), left));
        assert_eq!(found, expected, "{location} {elapsed:?}");
    }
}

/// An answer to a callout with nothing in it.
fn answered<'a>(status: &'a str, body: &'a str) -> CallResult<'a> {
    CallResult::Answered {
        status: Some(status.as_bytes()),
        location: None,
        content_type: None,
        grpc_status: None,
        grpc_message: None,
        body_length: body.len(),
        body: body.as_bytes(),
    }
}

#[test]
fn answers_to_a_grpc_check() {
    let config = config();
    let check = |content_type: &str,
                 grpc_status: Option<&str>,
                 grpc_message: Option<&str>,
                 body: &[u8],
                 reason: Reason| {
        let result = CallResult::Answered {
            status: Some(b"200"),
            location: None,
            content_type: Some(content_type.as_bytes()),
            grpc_status: grpc_status.map(str::as_bytes),
            grpc_message: grpc_message.map(str::as_bytes),
            body_length: body.len(),
            body,
        };
        let hook = if reason.is_success() { reply(reason) } else { Answer::Reset(reason) };
        for (path, expected) in [(GRPC, reply(reason)), (GRPC_HOOK, hook)] {
            let answer = on_check(plan(&config, path), result);
            assert_eq!(answer, expected, "{path} {grpc_status:?} {grpc_message:?} {body:x?}");
        }
    };
    let message = |status: u8| [0, 0, 0, 0, 2, 8, status];
    let grpc = "application/grpc";
    let connect = "upstream connect error or disconnect/reset before headers. reset reason: ";
    for (status, reason) in [
        (0, Reason::GrpcUnknown),
        (1, Reason::Ok),
        (2, Reason::GrpcNotServing),
        (3, Reason::GrpcServiceUnknown),
        (4, Reason::GrpcUnknown),
    ] {
        check(grpc, Some("0"), None, &message(status), reason);
        // What Envoy would say counts only beside a failure.
        check(grpc, Some("0"), Some("upstream request timeout"), &message(status), reason);
    }
    for (status, text, reason) in [
        (Some("14"), Some(format!("{connect}remote connection failure")), Reason::Refused),
        (Some("14"), Some(format!("{connect}connection termination")), Reason::Closed),
        (Some("14"), Some(format!("{connect}overflow")), Reason::Overloaded),
        (Some("14"), Some("no healthy upstream".into()), Reason::Configuration),
        (Some("4"), Some("upstream request timeout".into()), Reason::Timeout),
        (Some("14"), Some("the database is away".into()), Reason::GrpcError),
        (Some("14"), None, Reason::GrpcError),
        (Some("5"), Some("unknown service".into()), Reason::GrpcServiceUnknown),
        (Some("12"), None, Reason::GrpcUnimplemented),
        (None, None, Reason::GrpcError),
    ] {
        check(grpc, status, text.as_deref(), b"", reason);
    }
    check("text/html", Some("0"), None, &message(1), Reason::GrpcError);
    for (late, reason) in [(true, Reason::Timeout), (false, Reason::GrpcError)] {
        assert_eq!(on_check(plan(&config, GRPC), CallResult::Failed { late }), reply(reason));
    }
    assert_eq!(on_check(plan(&config, GRPC), answered("200", "")), reply(Reason::GrpcError));
}

#[test]
fn answers_to_a_hop() {
    let config = config();
    let connect = "upstream connect error or disconnect/reset before headers. reset reason: ";
    let ours = |status, reason| Answer::Reply { status, reason };
    for (status, body, probe, hook) in [
        ("200", "fine", ours(200, Reason::Ok), ours(200, Reason::Ok)),
        ("204", "", ours(204, Reason::Ok), ours(204, Reason::Ok)),
        ("304", "", ours(200, Reason::OkRedirect), ours(200, Reason::OkRedirect)),
        ("404", "", ours(404, Reason::Application), ours(404, Reason::Application)),
        ("503", "busy", ours(503, Reason::Application), ours(503, Reason::Application)),
        (
            "503",
            &format!("{connect}remote connection failure"),
            reply(Reason::Refused),
            Answer::Reset(Reason::Refused),
        ),
        (
            "503",
            &format!("{connect}connection termination"),
            reply(Reason::Closed),
            Answer::Reset(Reason::Closed),
        ),
        (
            "502",
            &format!("{connect}protocol error"),
            reply(Reason::Protocol),
            Answer::Reset(Reason::Protocol),
        ),
        ("504", "upstream request timeout", reply(Reason::Timeout), Answer::Reset(Reason::Timeout)),
        // An application may say that too, but Envoy says it with these statuses only.
        ("500", "upstream request timeout", ours(500, Reason::Application), ours(500, Reason::Application)),
        ("200", "upstream request timeout", ours(200, Reason::Ok), ours(200, Reason::Ok)),
        ("101", "", reply(Reason::Protocol), Answer::Reset(Reason::Protocol)),
        ("x", "", reply(Reason::Protocol), Answer::Reset(Reason::Protocol)),
    ] {
        for (path, expected) in [(HTTP, probe), (HOOK, hook)] {
            let answer = on_hop(&config, plan(&config, path), &a_hop(&config, 1), answered(status, body));
            assert_eq!(answer, expected, "{path} {status} {body}");
        }
    }
    for (late, reason) in [(true, Reason::Timeout), (false, Reason::Redirect)] {
        for (path, expected) in [(HTTP, reply(reason)), (HOOK, Answer::Reset(reason))] {
            let answer =
                on_hop(&config, plan(&config, path), &a_hop(&config, 1), CallResult::Failed { late });
            assert_eq!(answer, expected);
        }
    }
}

/// The request that follows `requests` requests.
fn a_hop(config: &Config, requests: u32) -> Hop {
    let Action::Http { request, .. } = &plan(config, HTTP).action else { panic!("http") };
    match Redirect::of(request, 302, Some(b"/hop"), 1, &config.pod_ip, &config.own_ports) {
        Redirect::Follow(request) => Hop::new(config, *request, requests),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_probe_has_ten_requests() {
    let config = config();
    for (requests, follows) in [(1, true), (8, true), (9, false), (10, false), (u32::MAX, false)] {
        let hop = a_hop(&config, requests);
        let result = match answered("302", "") {
            CallResult::Answered {
                status,
                content_type,
                grpc_status,
                grpc_message,
                body_length,
                body,
                ..
            } => {
                let location = Some(b"/next".as_slice());
                CallResult::Answered {
                    status,
                    location,
                    content_type,
                    grpc_status,
                    grpc_message,
                    body_length,
                    body,
                }
            }
            failed => failed,
        };
        match on_hop(&config, plan(&config, HTTP), &hop, result) {
            Answer::Follow(next) => assert!(follows && next.url.path == b"/next", "{requests}"),
            answer => assert_eq!((answer, follows), (reply(Reason::Redirect), false), "{requests}"),
        }
    }
}

#[test]
fn statuses() {
    for (text, status) in [
        (Some("200"), 200),
        (Some("65535"), 65535),
        (Some("65536"), 0),
        (Some("-1"), 0),
        (Some(""), 0),
        (Some(" 200"), 0),
        (Some("2x0"), 0),
        (None, 0),
    ] {
        assert_eq!(parse_status(text.map(str::as_bytes)), status, "{text:?}");
    }
    assert_eq!(parse_status(Some(b"\xff")), 0);
}

#[test]
fn bodies() {
    use Chunk::{Blanks, Empty, Untouched};
    assert_eq!(BLANKS, 10_241, "one more than kubelet reads");
    for (name, chunks, expected) in [
        ("nothing at all", vec![(0, true)], vec![Untouched]),
        ("a small one", vec![(2, true)], vec![Empty]),
        ("its end apart", vec![(2, false), (0, true)], vec![Empty, Untouched]),
        ("10239 bytes", vec![(10_239, false), (0, true)], vec![Empty, Untouched]),
        ("10240 bytes that end", vec![(10_240, true)], vec![Empty]),
        ("10240 bytes, and more may come", vec![(10_240, false), (0, true)], vec![Blanks, Untouched]),
        ("10241 bytes that end", vec![(10_241, true)], vec![Empty]),
        ("10241 bytes", vec![(10_241, false)], vec![Blanks]),
        (
            "byte by byte over the limit",
            vec![(10_239, false), (1, false), (1, false)],
            vec![Empty, Blanks, Empty],
        ),
        ("the limit and the end together", vec![(10_239, false), (1, true)], vec![Empty, Empty]),
        (
            "blanks once",
            vec![(20_000, false), (20_000, false), (0, false), (1, true)],
            vec![Blanks, Empty, Untouched, Empty],
        ),
        ("endless", vec![(usize::MAX, false), (usize::MAX, false), (1, false)], vec![Blanks, Empty, Empty]),
        (
            "empty chunks before",
            vec![(0, false), (0, false), (10_240, false)],
            vec![Untouched, Untouched, Blanks],
        ),
    ] {
        let mut body = Body::default();
        let found: Vec<_> = chunks.into_iter().map(|(size, end)| body.on_chunk(size, end)).collect();
        assert_eq!(found, expected, "{name}");
    }
}

proptest! {
    /// A path is sent on if and only if it stands in the table, byte for byte.
    #[test]
    fn only_declared_paths_are_probes(
        path in "/app-(health|lifecycle)/(http|app|app-2|x)/(livez|prestopz|readyz)[/?#;%]?|[ -~]{0,30}",
    ) {
        let config = config();
        let before = path.split('?').next().unwrap_or("");
        let declared = config.probes().any(|probe| probe.plan.path.to_string() == before);
        prop_assert_eq!(matches!(target(&config, path.as_bytes()), Target::Declared(_)), declared);
    }

    /// No answer without an application behind it is a success of a hook.
    #[test]
    fn whatever_envoy_says_a_hook_fails(
        status in 400..600u16,
        details in "[a-z_{}|]{0,40}",
        failure in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        prop_assume!(details != "via_upstream");
        let config = config();
        let head = ResponseHead { status, location: None, details: details.as_bytes(), failure: &failure };
        prop_assert!(matches!(on_response(&config, plan(&config, HOOK), head), Answer::Reset(_)));
    }

    #[test]
    fn every_body_is_emptied_but_for_one_chunk_of_blanks(
        chunks in prop::collection::vec(0..6000usize, 0..12),
    ) {
        let mut body = Body::default();
        let mut seen = 0;
        let mut blanks = 0;
        for size in chunks {
            seen += size;
            match body.on_chunk(size, false) {
                Chunk::Blanks => blanks += 1,
                Chunk::Empty => prop_assert!(size > 0),
                Chunk::Untouched => prop_assert_eq!(size, 0),
            }
            prop_assert_eq!(blanks, i32::from(seen >= 10_240));
        }
    }
}
