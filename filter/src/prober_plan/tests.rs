use probe::{Connection, PluginConfig};

use super::{HeaderPairs, PlannedRequest, ProberPlan, redirect_headers};

fn plan(prober: &str, pod: &str) -> ProberPlan {
    plan_at("/app-health/app/livez", prober, pod)
}

fn plan_at(path: &str, prober: &str, pod: &str) -> ProberPlan {
    plan_with(Connection::Close, path, prober, pod)
}

fn plan_with(connection: Connection, path: &str, prober: &str, pod: &str) -> ProberPlan {
    let text = format!(r#"{{"podIP":"10.0.0.5","probers":{{"{path}":{prober}}}}}"#);
    let config = PluginConfig::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let (path, prober) = config.probers.iter().next().expect("one prober");
    ProberPlan::new(path, prober, pod, connection)
}

fn lines(head: &HeaderPairs) -> Vec<String> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    head.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
}

fn check(prober: &str, pod: &str, expected: &[&str]) {
    assert_eq!(lines(&plan(prober, pod).headers(b"kube-probe/1.36")), expected, "{prober}");
}

#[test]
fn headers_of_http_probes() {
    check(
        r#"{"httpGet":{"port":8080,"path":"/ready?deep=1#x"}}"#,
        "10.0.0.5",
        &[
            ":method: GET",
            ":path: /ready?deep=1",
            ":authority: 10.0.0.5:8080",
            ":scheme: http",
            "user-agent: kube-probe/1.36",
            "accept: */*",
            "connection: close",
            "x-app-health-kind: http",
            "x-envoy-upstream-rq-timeout-ms: 1000",
            "x-forwarded-proto: http",
        ],
    );
    check(
        r#"{"httpGet":{"port":443,"scheme":"HTTPS","httpHeaders":[{"name":"Host","value":"shop"},{"name":"Accept","value":""},
            {"name":"User-Agent","value":"mine"},{"name":"Connection","value":"close"},{"name":"X-A","value":"1"},
            {"name":"x-a","value":"2"}]},"timeoutSeconds":7}"#,
        "[fd00::5]",
        &[
            ":method: GET",
            ":path: /",
            ":authority: shop",
            ":scheme: https",
            "user-agent: mine",
            "x-a: 1",
            "x-a: 2",
            "x-app-health-kind: https",
            "x-envoy-upstream-rq-timeout-ms: 7000",
            "x-forwarded-proto: http",
        ],
    );
}

#[test]
fn a_declared_forwarded_proto_takes_a_route_that_keeps_it() {
    for (scheme, kind, connection) in [
        ("HTTP", "http-x-forwarded-proto", &["connection: close"][..]),
        ("HTTPS", "https-x-forwarded-proto", &[]),
    ] {
        let prober = format!(
            r#"{{"httpGet":{{"port":1,"scheme":"{scheme}","httpHeaders":[{{"name":"X-Forwarded-PROTO","value":"https"}}]}}}}"#
        );
        let scheme = format!(":scheme: {}", scheme.to_lowercase());
        let kind = format!("x-app-health-kind: {kind}");
        let expected = [
            &[":method: GET", ":path: /", ":authority: 10.0.0.5:1", &scheme, "user-agent: kube-probe/1.36"],
            &["accept: */*", "x-forwarded-proto: https"][..],
            connection,
            &[&kind, "x-envoy-upstream-rq-timeout-ms: 1000"],
        ];
        check(&prober, "10.0.0.5", &expected.concat());
    }
}

#[test]
fn headers_of_tcp_probes() {
    for (pod, authority) in
        [("10.0.0.5", ":authority: 10.0.0.5:5432"), ("[fd00::5]", ":authority: [fd00::5]:5432")]
    {
        check(
            r#"{"tcpSocket":{"port":5432},"timeoutSeconds":3}"#,
            pod,
            &[
                ":method: POST",
                ":path: /",
                authority,
                ":scheme: http",
                "x-forwarded-proto: http",
                "x-app-health-kind: tcp",
                "x-envoy-upstream-rq-timeout-ms: 3000",
            ],
        );
    }
}

#[test]
fn headers_of_grpc_probes() {
    for (mode, scheme, seconds, timeout) in [
        ("", ":scheme: http", 0, "1000m"),
        ("TLS", ":scheme: https", 30, "30000m"),
        ("tls", ":scheme: https", 86_400, "86400000m"),
    ] {
        check(
            &format!(
                r#"{{"grpc":{{"port":9000,"service":"s","mode":"{mode}"}},"timeoutSeconds":{seconds}}}"#
            ),
            "10.0.0.5",
            &[
                ":method: POST",
                ":path: /grpc.health.v1.Health/Check",
                ":authority: 10.0.0.5:9000",
                scheme,
                "te: trailers",
                "content-type: application/grpc",
                "user-agent: kube-probe/1.36",
                &format!("grpc-timeout: {timeout}"),
                "x-app-health-dst: 10.0.0.5:9000",
            ],
        );
    }
}

#[test]
fn destinations() {
    for (prober, pod, destination) in [
        (
            r#"{"httpGet":{"port":80,"httpHeaders":[{"name":"Host","value":"other:1"}]}}"#,
            "10.0.0.5",
            "10.0.0.5:80",
        ),
        (r#"{"httpGet":{"port":443,"host":"other","path":"http://other/"}}"#, "[fd00::5]", "[fd00::5]:443"),
        (r#"{"tcpSocket":{"port":65535,"host":"other"}}"#, "10.0.0.5", "10.0.0.5:65535"),
    ] {
        let plan = plan(prober, pod);
        let (PlannedRequest::Http { destination: found, .. } | PlannedRequest::Tcp { destination: found }) =
            &plan.request
        else {
            panic!("{prober}")
        };
        assert_eq!(found, destination, "{prober}");
    }
    let plan = plan(r#"{"grpc":{"port":9000,"service":"s"}}"#, "[fd00::5]");
    let PlannedRequest::Grpc { destination, message, .. } = &plan.request else { panic!("grpc") };
    assert_eq!(
        (destination.as_str(), message.as_slice()),
        ("[fd00::5]:9000", b"\0\0\0\0\x03\x0a\x01s".as_slice())
    );
}

#[test]
fn headers_of_redirects() {
    let prober = r#"{"httpGet":{"port":8080,"path":"/a","httpHeaders":[{"name":"X-A","value":"1"}]}}"#;
    let plan = plan(prober, "10.0.0.5");
    let PlannedRequest::Http { request, .. } = &plan.request else { panic!("http") };
    for (referer, line) in
        [(None, None), (Some("http://10.0.0.5:8080/"), Some("referer: http://10.0.0.5:8080/"))]
    {
        let request = probe::Request { referer: referer.map(Into::into), ..*request.clone() };
        let expected: Vec<_> = [
            ":method: GET",
            ":path: /b",
            ":authority: 10.0.0.5:8080",
            ":scheme: http",
            "user-agent: kube-probe/1.36",
            "accept: */*",
            "x-a: 1",
            "connection: close",
        ]
        .into_iter()
        .chain(line)
        .chain(["x-app-health-dst: 10.0.0.5:9090"])
        .collect();
        assert_eq!(lines(&redirect_headers(&request, b"/b", b"kube-probe/1.36", "10.0.0.5:9090")), expected);
    }
}

#[test]
fn user_agents_that_are_forwarded() {
    for (prober, wanted) in [
        (r#"{"httpGet":{"port":1}}"#, true),
        (r#"{"httpGet":{"port":1,"httpHeaders":[{"name":"User-Agent","value":"x"}]}}"#, false),
        (r#"{"httpGet":{"port":1,"httpHeaders":[{"name":"user-agent","value":""}]}}"#, false),
        (r#"{"tcpSocket":{"port":1}}"#, false),
        (r#"{"grpc":{"port":1}}"#, true),
    ] {
        let plan = plan(prober, "10.0.0.5");
        assert_eq!(plan.wants_user_agent(), wanted, "{prober}");
        let sent = lines(&plan.headers(b"kube-probe/1.36")).contains(&"user-agent: kube-probe/1.36".into());
        assert_eq!(sent, wanted, "{prober}");
    }
}

#[test]
fn hooks() {
    for (path, hook) in [("/app-health/app/readyz", false), ("/app-lifecycle/app/poststartz", true)] {
        assert_eq!(plan_at(path, r#"{"httpGet":{"port":1}}"#, "10.0.0.5").is_hook(), hook);
    }
}

#[test]
fn headers_for_connections_that_are_reused() {
    let headers = |path: &str, prober: &str| {
        lines(&plan_with(Connection::KeepAlive, path, prober, "10.0.0.5").headers(b"kube-probe/1.36"))
    };
    let http = r#"{"httpGet":{"port":8080}}"#;
    assert_eq!(
        headers("/app-health/app/livez", http),
        [
            ":method: GET",
            ":path: /",
            ":authority: 10.0.0.5:8080",
            ":scheme: http",
            "user-agent: kube-probe/1.36",
            "accept: */*",
            "x-envoy-retry-on: reset",
            "x-envoy-max-retries: 1",
            "x-app-health-kind: reuse-http",
            "x-envoy-upstream-rq-timeout-ms: 1000",
            "x-forwarded-proto: http",
        ]
    );
    let declared = r#"{"httpGet":{"port":8080,"httpHeaders":[{"name":"Connection","value":"close"}]}}"#;
    let sent = headers("/app-health/app/livez", declared);
    assert!(sent.contains(&"connection: close".into()), "{sent:?}");

    for (prober, kind) in [
        (http, "http"),
        (r#"{"httpGet":{"port":1,"scheme":"HTTPS"}}"#, "https"),
        (
            r#"{"httpGet":{"port":1,"httpHeaders":[{"name":"X-Forwarded-Proto","value":"a"}]}}"#,
            "http-x-forwarded-proto",
        ),
        (
            r#"{"httpGet":{"port":1,"scheme":"HTTPS","httpHeaders":[{"name":"X-Forwarded-Proto","value":"a"}]}}"#,
            "https-x-forwarded-proto",
        ),
    ] {
        let probe = headers("/app-health/app/livez", prober);
        assert!(probe.contains(&format!("x-app-health-kind: reuse-{kind}")), "{probe:?}");
        let hook = headers("/app-lifecycle/app/prestopz", prober);
        assert!(hook.contains(&format!("x-app-health-kind: {kind}")), "{hook:?}");
        assert!(!hook.iter().any(|header| header.starts_with("x-envoy-retry-on")), "{hook:?}");
        assert_eq!(hook.contains(&"connection: close".into()), !kind.contains("https"), "{hook:?}");
    }
}
