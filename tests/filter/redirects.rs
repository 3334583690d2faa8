//! Tests of redirects: which ones the filter follows, with which request, and how it translates the
//! responses.

use std::time::Duration;

use wasm_host::scenario::Scenario;
use wasm_host::scenarios::{GRPC, SECRET, hop};
use wasm_host::transcript::{Effect, Headers, headers};
use wasm_host::{CalloutAnswer, Vm};

use crate::support::{callouts, check, value, vm_with_probers, vm_with_table};

const HTTP: &str = "/app-health/app/readyz";
const HTTPS: &str = "/app-health/app/livez";
const HOOK: &str = "/app-lifecycle/app/prestopz";

const PROBERS: [(&str, &str); 3] = [
    (HTTP, r#"{"httpGet": {"path": "/one/a?b=c", "port": 8080}, "timeoutSeconds": 5}"#),
    (
        HTTPS,
        r#"{"httpGet": {"path": "/", "port": 8443, "scheme": "https",
            "httpHeaders": [{"name": "Host", "value": "shop"}, {"name": "X-Declared", "value": "yes"}]}}"#,
    ),
    (HOOK, r#"{"httpGet": {"path": "/bye", "port": 8080}}"#),
];

fn found(path: &str, location: &str) -> Scenario {
    Scenario::get(path).application(302, [("location", location), ("set-cookie", SECRET)])
}

/// Returns cluster, headers and timeout of the only callout that this redirect causes.
fn followed(path: &str, location: &str) -> (String, Headers, u32) {
    let mut vm = vm_with_probers(&PROBERS);
    found(path, location).run(&mut vm).unwrap();
    match callouts(&vm).as_slice() {
        [Effect::HttpCall { cluster, headers, body, timeout_ms, .. }] if body.is_empty() => {
            (cluster.clone(), headers.clone(), *timeout_ms)
        }
        other => panic!("{location}: {other:?}"),
    }
}

#[test]
fn a_redirect_sends_the_request_that_kubelet_would_send() {
    let plain = headers([
        (":method", "GET"),
        (":path", "/one/d?e"),
        (":authority", "10.0.0.5:8080"),
        (":scheme", "http"),
        ("user-agent", "kube-probe/1.36"),
        ("accept", "*/*"),
        ("connection", "close"),
        ("referer", "http://10.0.0.5:8080/one/a?b=c"),
        ("x-app-health-dst", "10.0.0.5:8080"),
    ]);
    assert_eq!(followed(HTTP, "d?e"), ("app_health_callout_http".into(), plain, 5000));
    let tls = headers([
        (":method", "GET"),
        (":path", "/x"),
        (":authority", "shop"),
        (":scheme", "https"),
        ("user-agent", "kube-probe/1.36"),
        ("accept", "*/*"),
        ("x-declared", "yes"),
        ("referer", "https://10.0.0.5:8443/"),
        ("x-app-health-dst", "10.0.0.5:8443"),
    ]);
    assert_eq!(followed(HTTPS, "/x"), ("app_health_callout_https".into(), tls, 1000));
}

#[test]
fn a_location_sets_scheme_port_and_authority() {
    let http = "app_health_callout_http";
    let https = "app_health_callout_https";
    // Each row has the prober's path, the location, and the expected cluster, authority,
    // destination, path and referer.
    let rows = [
        (
            HTTP,
            "http://10.0.0.5:9090/x",
            http,
            "10.0.0.5:9090",
            "10.0.0.5:9090",
            "/x",
            "http://10.0.0.5:8080/one/a?b=c",
        ),
        (HTTP, "http://10.0.0.5/x", http, "10.0.0.5", "10.0.0.5:80", "/x", "http://10.0.0.5:8080/one/a?b=c"),
        (HTTP, "https://10.0.0.5/", https, "10.0.0.5", "10.0.0.5:443", "/", "http://10.0.0.5:8080/one/a?b=c"),
        (HTTP, "//10.0.0.5:81/y", http, "10.0.0.5:81", "10.0.0.5:81", "/y", "http://10.0.0.5:8080/one/a?b=c"),
        (HTTP, "../z", http, "10.0.0.5:8080", "10.0.0.5:8080", "/z", "http://10.0.0.5:8080/one/a?b=c"),
        (
            HTTPS,
            "https://10.0.0.5:8443/x",
            https,
            "10.0.0.5:8443",
            "10.0.0.5:8443",
            "/x",
            "https://10.0.0.5:8443/",
        ),
        (HTTPS, "http://10.0.0.5:8080/x", http, "10.0.0.5:8080", "10.0.0.5:8080", "/x", ""),
    ];
    for (path, location, cluster, authority, destination, target, referer) in rows {
        let (to, head, _) = followed(path, location);
        let said = [":authority", "x-app-health-dst", ":path", "referer"].map(|name| value(&head, name));
        assert_eq!(to, cluster, "{location}");
        assert_eq!(said, [authority, destination, target, referer].map(str::to_owned), "{location}");
    }
}

#[test]
fn results_of_redirects() {
    let reset = |words: &str| {
        let text = "upstream connect error or disconnect/reset before headers. reset reason:";
        hop(503, "", &format!("{text} {words}"))
    };
    let passed = "passed 200 and 0 spaces";
    let hops = |answer: CalloutAnswer| found(HTTP, "/a").callout(answer);
    let rows = vec![
        ("elsewhere", found(HTTP, "http://169.254.169.254/latest"), passed),
        ("the name in Host", found(HTTPS, "https://shop/"), passed),
        ("no location", Scenario::get(HTTP).application::<&str>(302, []), passed),
        ("empty location", found(HTTP, ""), passed),
        ("not asked for", Scenario::get(HTTP).application(304, [("location", "/a")]), passed),
        ("unreadable", found(HTTP, "http://["), "528 redirect"),
        ("own port", found(HTTP, "http://10.0.0.5:15000/"), "528 redirect"),
        ("port 0", found(HTTP, "http://10.0.0.5:0/"), "528 redirect"),
        ("hop ok", hops(hop(201, "", SECRET)), "201"),
        ("hop application", hops(hop(404, "", SECRET)), "404"),
        ("hop elsewhere", hops(hop(302, "http://other/", SECRET)), "200"),
        ("hop broken", hops(hop(302, "http://[", SECRET)), "528 redirect"),
        ("hop without status", hops(CalloutAnswer::default()), "528 redirect"),
        ("hop refused", hops(reset("remote connection failure")), "502 refused"),
        ("hop closed", hops(reset("connection termination")), "520 closed"),
        ("hop overloaded", hops(reset("overflow")), "503 overloaded"),
        ("hop silent", hops(hop(504, "", "upstream request timeout")), "504 timeout"),
        ("hop without cluster", hops(hop(503, "", "no healthy upstream")), "530 configuration"),
        ("hop failed", found(HTTP, "/a").callout_failed(), "528 redirect"),
        ("hop late", found(HTTP, "/a").wait(Duration::from_secs(5)).callout_failed(), "504 timeout"),
        (
            "no time left",
            Scenario::get(HTTP).wait(Duration::from_secs(5)).push(found(HTTP, "/a").steps.remove(0)),
            "504 timeout",
        ),
        ("hook followed", found(HOOK, "/a").callout(hop(500, "", SECRET)), "500"),
        ("hook refused", found(HOOK, "/a").callout(reset("remote connection failure")), "reset"),
        ("hook failed", found(HOOK, "/a").callout_failed(), "reset"),
    ];
    check(&mut vm_with_probers(&PROBERS), rows);
}

#[test]
fn at_most_ten_requests_are_sent() {
    let hops = |count: usize| {
        (0..count).fold(found(HTTP, "/a"), |scenario, _| scenario.callout(hop(302, "/a", SECRET)))
    };
    let ten = hops(8).callout(hop(200, "", SECRET));
    let eleven = hops(9).callout(hop(200, "", SECRET));
    for (scenario, expected) in [(ten, "200"), (eleven, "528 redirect")] {
        let mut vm = vm_with_probers(&PROBERS);
        check(&mut vm, vec![("ten requests", scenario, expected)]);
        assert_eq!(callouts(&vm).len(), 9, "{expected}");
    }
}

#[test]
fn a_redirect_gets_the_remaining_time() {
    let mut vm = vm_with_probers(&PROBERS);
    let millis = Duration::from_millis;
    let scenario = Scenario::get(HTTP)
        .wait(millis(1_250))
        .push(found(HTTP, "/a").steps.remove(0))
        .wait(millis(3_000))
        .callout(hop(302, "/b", SECRET))
        .wait(millis(749))
        .callout(hop(302, "/c", SECRET))
        .wait(millis(1))
        .callout(hop(302, "/d", SECRET));
    check(&mut vm, vec![("at the deadline", scenario, "504 timeout")]);
    let timeout = |effect| if let Effect::HttpCall { timeout_ms, .. } = effect { timeout_ms } else { 0 };
    let timeouts: Vec<_> = callouts(&vm).into_iter().map(timeout).collect();
    assert_eq!(timeouts, [3_750, 750, 1]);
}

#[test]
fn a_missing_cluster_is_a_configuration_error() {
    let rows = vec![
        ("grpc", Scenario::get(GRPC), "530 configuration"),
        (
            "redirect",
            Scenario::get(wasm_host::scenarios::HTTP).application(302, [("location", "/a")]),
            "530 configuration",
        ),
    ];
    let mut vm: Vm = vm_with_table();
    vm.host_mut().clusters.clear();
    check(&mut vm, rows);
}
