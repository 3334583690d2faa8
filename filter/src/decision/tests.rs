use std::rc::Rc;
use std::time::Duration;

use probe::Reason;
use proptest::prelude::*;

use super::{CalloutSize, Decision, ProbeMatch, ProbeRequest, find_probe, parse_status, reject};
use crate::attributes::Attribute;
use crate::attributes::tests::Table;
use crate::config::Config;
use crate::prober_plan::ProberPlan;

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

pub(super) fn config() -> Rc<Config> {
    Rc::new(Config::parse(CONFIG.as_bytes()).unwrap_or_else(|error| panic!("{error}")))
}

pub(super) fn plan<'a>(config: &'a Config, path: &str) -> &'a ProberPlan {
    &config.probe(path.as_bytes()).expect(path).plan
}

pub(super) fn request(config: &Rc<Config>, path: &str) -> ProbeRequest {
    ProbeRequest::new(config, config.probe(path.as_bytes()).expect(path))
}

pub(super) fn reply(reason: Reason) -> Decision<'static> {
    Decision::LocalReply { status: reason.status(), reason }
}

fn stream(status: u16, reason: Reason) -> Decision<'static> {
    Decision::ForwardStatus { status, reason }
}

#[test]
fn probes_are_found_by_path() {
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
        let found = match find_probe(&config, path.as_bytes()) {
            ProbeMatch::None => "pass".into(),
            ProbeMatch::Undeclared => "unknown".into(),
            ProbeMatch::Declared(probe) => probe.plan.path.to_string(),
        };
        assert_eq!(found, expected, "{path:?}");
    }
    assert!(matches!(find_probe(&config, b"/app-health/\xff/livez"), ProbeMatch::Undeclared));
}

#[test]
fn requests_that_are_rejected() {
    for method in [Some("POST"), Some("HEAD"), Some("get"), Some("GET "), Some("CONNECT"), None] {
        for has_body in [false, true] {
            let rejected = reject(method.map(str::as_bytes), has_body);
            assert_eq!(rejected, Some(Reason::Method), "{method:?} {has_body}");
        }
    }
    assert_eq!(reject(Some(b"GET"), true), Some(Reason::BadRequest));
    assert_eq!(reject(Some(b"GET"), false), None);
}

#[test]
fn first_requests() {
    let config = config();
    const KUBELET: &[u8] = b"kube-probe/1.36";
    let envoy = Table::new([(Attribute::RequestHeader("user-agent"), "kube-probe/1.36")]);
    for (path, destination, user_agent) in [
        (HTTP, "10.0.0.5:8080", Some(KUBELET)),
        (HTTPS, "10.0.0.5:8443", Some(KUBELET)),
        (TCP, "10.0.0.5:5432", None),
        (HOOK, "10.0.0.5:8080", Some(KUBELET)),
    ] {
        let plan = plan(&config, path);
        let mut request = request(&config, path);
        let Decision::Forward { destination: found, headers } = request.first_request(&envoy) else {
            panic!("{path}")
        };
        assert_eq!(found, destination, "{path}");
        assert_eq!(headers, plan.headers(KUBELET), "{path}");
        let sent = headers.iter().find(|(name, _)| *name == b"user-agent").map(|(_, value)| *value);
        assert_eq!(sent, user_agent, "{path}");
    }
    for (path, cluster, seconds) in
        [(GRPC, "app_health_grpc", 3), ("/app-health/grpc-tls/livez", "app_health_grpc_tls", 1)]
    {
        let plan = plan(&config, path);
        let mut request = request(&config, path);
        let Decision::Callout(callout) = request.first_request(&envoy) else { panic!("{path}") };
        assert_eq!(
            (callout.cluster, callout.timeout, callout.body),
            (cluster, Duration::from_secs(seconds), &b"\0\0\0\0\0"[..])
        );
        assert_eq!(callout.headers, plan.headers(KUBELET), "{path}");
    }
}

/// Returns the response of a route. Envoy's details and its transport failure are set for an error
/// only.
fn route(status: u16, location: Option<&str>, details: &str, failure: &[u8]) -> Table {
    let mut table = Table::response(&status.to_string(), [(Attribute::CodeDetails, details)]);
    table.values.insert(Attribute::TransportFailure, failure.to_vec());
    if let Some(location) = location {
        table.values.insert(Attribute::ResponseHeader("location"), location.into());
    }
    table
}

#[test]
fn responses_of_the_application() {
    let config = config();
    let check = |path: &str, status, location: Option<&str>, expected: Decision| {
        let envoy = route(status, location, "via_upstream", b"");
        assert_eq!(request(&config, path).on_response(&envoy), expected, "{path} {status} {location:?}");
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
        check(HOOK, status, None, Decision::Reset(Reason::Protocol));
    }
    check(HTTP, 302, Some("/%zz"), reply(Reason::Redirect));
    check(HTTP, 302, Some("http://10.0.0.5:15020/x"), reply(Reason::Redirect));
    check(HOOK, 302, Some("/%zz"), Decision::Reset(Reason::Redirect));
    check(TCP, 200, None, reply(Reason::Ok));
    check(TCP_HOOK, 200, None, reply(Reason::Ok));
    for status in [0, 204, 302, 404, 503] {
        check(TCP, status, None, reply(Reason::Configuration));
    }
}

#[test]
fn responses_of_envoy() {
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
        let envoy = route(status, None, &details, failure.as_bytes());
        // A TCP connection that was closed had been established.
        let (tcp, tcp_hook) = match reason {
            Reason::Closed => (reply(Reason::Ok), reply(Reason::Ok)),
            reason => (reply(reason), Decision::Reset(reason)),
        };
        for (path, expected) in [
            (HTTP, reply(reason)),
            (HTTPS, reply(reason)),
            (HOOK, Decision::Reset(reason)),
            (TCP, tcp),
            (TCP_HOOK, tcp_hook),
        ] {
            assert_eq!(request(&config, path).on_response(&envoy), expected, "{path} {status} {details}");
        }
    }
}

#[test]
fn redirects_become_callouts_with_the_remaining_timeout() {
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
        let mut request = request(&config, path);
        request.first_request(&Table::new([(Attribute::RequestHeader("user-agent"), "kube-probe/1.36")]));
        let envoy = Table { elapsed: Some(elapsed), ..route(302, Some(location), "", b"") };
        let call = match request.on_response(&envoy) {
            Decision::Callout(call) => Some(call),
            decision => {
                assert_eq!(decision, reply(Reason::Timeout), "{location} {elapsed:?}");
                None
            }
        };
        let found = call.as_ref().map(|call| {
            let header = |name: &str| {
                let value =
                    call.headers.iter().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| *value);
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

/// The response to a redirect may be a local reply of Envoy, whose text is the body, or `grpc-message` if the
/// request had a `content-type` of gRPC. The application may send the same texts with other statuses.
#[test]
fn local_replies_to_a_redirect() {
    let config = config();
    let text = "upstream request timeout";
    let application = |status| Decision::LocalReply { status, reason: Reason::Application };
    for (status, message, body, expected) in [
        ("503", None, Some(text), reply(Reason::Timeout)),
        ("503", None, None, application(503)),
        ("500", None, Some(text), application(500)),
        ("200", Some(text), None, reply(Reason::Timeout)),
        ("200", None, Some(text), reply(Reason::Ok)),
        ("201", Some(text), None, Decision::LocalReply { status: 201, reason: Reason::Ok }),
    ] {
        let mut request = request(&config, HTTP);
        request.first_request(&Table::new([]));
        let redirect = Table { elapsed: Some(Duration::ZERO), ..route(302, Some("/b"), "", b"") };
        assert!(matches!(request.on_response(&redirect), Decision::Callout(_)));
        let mut table = Table::new([(Attribute::CalloutHeader(":status"), status)]);
        table.values.extend(message.map(|text| (Attribute::CalloutHeader("grpc-message"), text.into())));
        let length = body.map_or(0, str::len);
        table.values.extend(body.map(|text| (Attribute::CalloutBody(length), text.into())));
        let size = CalloutSize { headers: 1, body: length, trailers: 0 };
        assert_eq!(request.on_callout_response(size, &table), expected, "{status} {message:?} {body:?}");
    }
}

/// Go's client sends this one, which Envoy cannot.
#[test]
fn redirects_with_a_blank_in_the_query_are_invalid() {
    let config = config();
    for (path, expected) in [(HTTP, reply(Reason::Redirect)), (HOOK, Decision::Reset(Reason::Redirect))] {
        let mut request = request(&config, path);
        request.first_request(&Table::new([]));
        assert_eq!(request.on_response(&route(302, Some("/b?d e"), "", b"")), expected, "{path}");
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
        prop_assert_eq!(matches!(find_probe(&config, path.as_bytes()), ProbeMatch::Declared(_)), declared);
    }

    /// Unless the application has responded, no response counts as a success of a hook.
    #[test]
    fn hooks_fail_on_responses_of_envoy(
        status in 400..600u16,
        details in "[a-z_{}|]{0,40}",
        failure in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        prop_assume!(details != "via_upstream");
        let config = config();
        let envoy = route(status, None, &details, &failure);
        prop_assert!(matches!(request(&config, HOOK).on_response(&envoy), Decision::Reset(_)));
    }
}
