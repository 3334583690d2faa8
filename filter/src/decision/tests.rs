use std::time::Duration;

use probe::Reason;
use proptest::prelude::*;

use super::{
    Answer, Ask, Decision, Hop, RequestHead, ResponseHead, Target, ask, hop, on_request, on_response,
    parse_status, target,
};
use crate::config::Config;
use crate::plan::Plan;

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
pub(super) const HTTP: &str = "/app-health/http/livez";
const HTTPS: &str = "/app-health/https/livez";
const TCP: &str = "/app-health/tcp/livez";
pub(super) const GRPC: &str = "/app-health/grpc/livez";
pub(super) const HOOK: &str = "/app-lifecycle/http/prestopz";
const TCP_HOOK: &str = "/app-lifecycle/tcp/prestopz";
pub(super) const GRPC_HOOK: &str = "/app-lifecycle/grpc/prestopz";

pub(super) fn config() -> Config {
    Config::parse(CONFIG.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn plan<'a>(config: &'a Config, path: &str) -> &'a Plan {
    &config.probe(path.as_bytes()).expect(path).plan
}

pub(super) fn reply(reason: Reason) -> Answer {
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
        // These paths have a prefix of the filter and are not declared.
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
        // These paths do not have a prefix of the filter.
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
        // The method is checked first, then the body, then the free slot.
        (
            HTTP,
            RequestHead { method: Some(b"PUT"), has_body: true, has_place: false, ..HEAD },
            reply(Reason::Method),
        ),
        (HTTP, RequestHead { has_body: true, has_place: false, ..HEAD }, reply(Reason::BadRequest)),
        // Any response would be a success of the hook.
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
        // A TCP connection that was closed had been established.
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

proptest! {
    /// A request is a probe if and only if its path is declared, byte for byte.
    #[test]
    fn only_declared_paths_are_probes(
        path in "/app-(health|lifecycle)/(http|app|app-2|x)/(livez|prestopz|readyz)[/?#;%]?|[ -~]{0,30}",
    ) {
        let config = config();
        let before = path.split('?').next().unwrap_or("");
        let declared = config.probes().any(|probe| probe.plan.path.to_string() == before);
        prop_assert_eq!(matches!(target(&config, path.as_bytes()), Target::Declared(_)), declared);
    }

    /// Unless the application has responded, no response counts as a success of a hook.
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
}
