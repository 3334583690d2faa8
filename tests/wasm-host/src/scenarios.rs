//! One scenario of each kind that a filter handles, with the prober table for them; used by fault
//! tests, long runs and benchmarks.

use std::time::Duration;

use super::scenario::Scenario;
use super::{CalloutAnswer, Host};
use crate::transcript::{Headers, headers};

/// A prober table with each kind of prober and a hook.
pub const TABLE: &[u8] = br#"{"podIP": "10.0.0.5", "statusPort": 15020, "reservedPorts": [19000],
 "clusters": {"grpc": "app_health_grpc", "grpcTLS": "app_health_grpc_tls",
              "http": "app_health_callout_http", "https": "app_health_callout_https"},
 "probers": {
   "/app-health/app/readyz": {"httpGet": {"path": "/ready?deep=1", "port": 8080, "scheme": "HTTPS",
                              "httpHeaders": [{"name": "Host", "value": "shop.example.com"}]}, "timeoutSeconds": 2},
   "/app-health/app/livez": {"tcpSocket": {"port": 5432}},
   "/app-health/api/startupz": {"grpc": {"port": 9000, "service": null, "mode": "TLS"}, "timeoutSeconds": 3},
   "/app-lifecycle/app/prestopz": {"httpGet": {"path": "/bye", "port": 8080}}}}"#;

/// `httpGet` over TLS with a timeout of 2 s.
pub const HTTP: &str = "/app-health/app/readyz";
/// `tcpSocket` with a timeout of 1 s.
pub const TCP: &str = "/app-health/app/livez";
/// `grpc` over TLS with a timeout of 3 s.
pub const GRPC: &str = "/app-health/api/startupz";
/// `httpGet` of a hook, in plaintext.
pub const HOOK: &str = "/app-lifecycle/app/prestopz";

/// Part of everything that the application sends; it must not reach the client.
pub const SECRET: &str = "the-application-alone";

/// Returns a host with the four clusters of callouts.
pub fn host() -> Host {
    let clusters =
        ["app_health_grpc", "app_health_grpc_tls", "app_health_callout_http", "app_health_callout_https"];
    Host { clusters: clusters.map(str::to_owned).into(), ..Host::default() }
}

/// Returns every scenario with its name.
pub fn all() -> Vec<(&'static str, Scenario)> {
    [http(), redirects(), others(), refused()].concat()
}

/// Returns the response to the callout of a redirect.
pub fn hop(status: u16, location: &str, body: &str) -> CalloutAnswer {
    let mut head = headers([(":status", status.to_string())]);
    if !location.is_empty() {
        head.extend(headers([("location", location)]));
    }
    head.extend(headers([("set-cookie", SECRET)]));
    CalloutAnswer { headers: head, body: body.into(), trailers: Headers::new() }
}

/// Returns the response of a gRPC server: a message with a serving status, or only a grpc-status.
pub fn grpc(serving: Option<u8>, grpc_status: &str) -> CalloutAnswer {
    let head = headers([(":status", "200"), ("content-type", "application/grpc"), ("server", SECRET)]);
    let body = serving.map_or(Vec::new(), |status| vec![0, 0, 0, 0, 2, 8, status]);
    CalloutAnswer { headers: head, body, trailers: headers([("grpc-status", grpc_status)]) }
}

fn ok(path: &str) -> Scenario {
    Scenario::get(path).application(200, [("server", SECRET), ("set-cookie", SECRET)])
}

fn http() -> Vec<(&'static str, Scenario)> {
    let refused = "upstream_reset_before_response_started{remote_connection_failure}";
    let failure = "delayed_connect_error:_Connection_refused";
    vec![
        ("http ok", ok(HTTP).chunk(SECRET, true)),
        ("http endless", ok(HTTP).chunk(SECRET, false).chunk([b'x'; 10_240], false).chunk(SECRET, false)),
        ("http body breaks", ok(HTTP).chunk(SECRET, false)),
        ("http application", Scenario::get(HTTP).application(503, [("server", SECRET)]).chunk(SECRET, true)),
        ("http refused", Scenario::get(HTTP).envoy(503, refused, failure)),
        ("http timeout", Scenario::get(HTTP).wait(Duration::from_secs(2)).envoy(504, "response_timeout", "")),
        ("http caller gone", Scenario::get(HTTP)),
        ("hook ok", ok(HOOK).chunk(SECRET, true)),
        ("hook refused", Scenario::get(HOOK).envoy(503, refused, failure)),
    ]
}

fn redirects() -> Vec<(&'static str, Scenario)> {
    let found = |location: &'static str| {
        Scenario::get(HTTP).application(302, [("location", location), ("server", SECRET)])
    };
    let reset =
        "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure";
    vec![
        ("redirect followed", found("/a").callout(hop(302, "/b", SECRET)).callout(hop(200, "", SECRET))),
        ("redirect application", found("/a").callout(hop(500, "", SECRET))),
        ("redirect refused", found("/a").callout(hop(503, "", reset))),
        ("redirect failed", found("/a").callout_failed()),
        ("redirect late", found("/a").wait(Duration::from_secs(2)).callout_failed()),
        ("redirect elsewhere", found("http://169.254.169.254/")),
        ("redirect broken", found("http://[")),
        ("redirect own port", found("http://10.0.0.5:15000/")),
    ]
}

fn others() -> Vec<(&'static str, Scenario)> {
    vec![
        ("tcp connected", Scenario::get(TCP).application::<&str>(200, [])),
        (
            "tcp overloaded",
            Scenario::get(TCP).envoy(503, "upstream_reset_before_response_started{overflow}", ""),
        ),
        ("grpc serving", Scenario::get(GRPC).callout(grpc(Some(1), "0"))),
        ("grpc not serving", Scenario::get(GRPC).callout(grpc(Some(2), "0"))),
        ("grpc unimplemented", Scenario::get(GRPC).callout(grpc(None, "12"))),
        ("grpc failed", Scenario::get(GRPC).callout_failed()),
        ("grpc late", Scenario::get(GRPC).wait(Duration::from_secs(3)).callout_failed()),
        ("grpc caller gone", Scenario::get(GRPC)),
    ]
}

fn refused() -> Vec<(&'static str, Scenario)> {
    let with_body = Scenario { end_of_stream: false, ..Scenario::get(TCP) };
    vec![
        ("undeclared", Scenario::get("/app-health/app/%0alivez")),
        ("method", Scenario::get(GRPC).with(":method", "POST")),
        ("body", with_body),
        ("odd bytes", Scenario::get(b"/app-health/\xff\0\n/livez").with("user-agent", b"\xff\x80\n")),
        ("odd user agent", ok(HTTP).with("user-agent", b"\xff\x80").chunk(SECRET, true)),
        ("long path", Scenario::get([b"/app-health/".as_slice(), &[b'a'; 16 << 10]].concat())),
        ("not ours", Scenario::get("/stats/prometheus")),
    ]
}
