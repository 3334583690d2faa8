use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{HANDLERS, Thresholds, WorkloadHandler, WorkloadHttpGet, WorkloadProbe, handler_name};
use probe::{HandlerKind, Header, Scheme};

/// In the text of an error, `KINDS` stands for the names of all handlers.
fn parse(probe: &Value) -> (Option<WorkloadProbe>, Vec<String>) {
    match WorkloadProbe::parse(probe) {
        Ok(checked) => (Some(checked.value), checked.warnings),
        Err(errors) => {
            let kinds = format!("one of {} is", HANDLERS.map(handler_name).join(", "));
            (None, errors.iter().map(|error| error.replace(&kinds, "one of KINDS is")).collect())
        }
    }
}

/// Checks that the probe is rejected with exactly these errors.
fn check_rejected(probe: Value, lines: &[&str]) {
    let (value, errors) = parse(&probe);
    assert_eq!(
        (value, errors),
        (None, lines.iter().map(|line| format!("spec.probe{line}")).collect()),
        "{probe}"
    );
}

/// Checks that the probe is accepted with exactly these warnings.
fn accepted(probe: &Value, warnings: &[&str]) -> WorkloadProbe {
    let (value, lines) = parse(probe);
    let value = value.unwrap_or_else(|| panic!("{probe}: {lines:?}"));
    assert_eq!(lines, warnings.iter().map(|line| format!("spec.probe{line}")).collect::<Vec<_>>(), "{probe}");
    value
}

fn port(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a port")
}

fn http(fields: &Value) -> WorkloadHttpGet {
    match accepted(&json!({ "httpGet": fields }), &[]).handler {
        WorkloadHandler::HttpGet(http) => http,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_default() {
    let expected = WorkloadProbe {
        initial_delay: Duration::ZERO,
        timeout: Duration::from_secs(1),
        period: Duration::from_secs(10),
        thresholds: Thresholds { success: NonZeroU32::MIN, failure: NonZeroU32::new(3).expect("three") },
        handler: WorkloadHandler::HttpGet(WorkloadHttpGet {
            path: "/".into(),
            port: port(8080),
            scheme: Scheme::Http,
            host: None,
            headers: Vec::new(),
        }),
    };
    for probe in [
        json!({"httpGet": {"port": 8080}}),
        json!({"httpGet": {"port": 8080.0}, "initialDelaySeconds": 0, "timeoutSeconds": 0, "periodSeconds": 0,
               "successThreshold": 0, "failureThreshold": 0}),
        json!({"httpGet": {"port": 8080, "path": "", "scheme": "", "host": "", "httpHeaders": []},
               "initialDelaySeconds": null, "timeoutSeconds": null}),
        json!({"httpGet": {"port": 8080, "path": null, "scheme": "HTTP", "host": null, "httpHeaders": null}}),
    ] {
        assert_eq!(accepted(&probe, &[]), expected, "{probe}");
    }
}

#[test]
fn every_field() {
    let probe = json!({
        "initialDelaySeconds": 5, "timeoutSeconds": 3, "periodSeconds": 11, "successThreshold": 2, "failureThreshold": 2147483647,
        "httpGet": {"path": "readyz?full=1#top", "port": 8443, "scheme": "HTTPS", "host": "127.0.0.1",
                    "httpHeaders": [{"name": "hOST", "value": "payments.local"}, {"name": "X-a", "value": "1"}, {"name": "X-a"}]},
    });
    let header = |name: &str, value: &str| Header { name: name.into(), value: value.into() };
    let found = accepted(&probe, &[]);
    assert_eq!((found.initial_delay, found.timeout), (Duration::from_secs(5), Duration::from_secs(3)));
    assert_eq!(found.period, Duration::from_secs(11));
    assert_eq!((found.thresholds.success.get(), found.thresholds.failure.get()), (2, 2_147_483_647));
    let WorkloadHandler::HttpGet(http) = found.handler else { panic!("{found:?}") };
    assert_eq!(http.declared_host(), Some("payments.local"));
    let expected = WorkloadHttpGet {
        path: "/readyz?full=1".into(),
        port: port(8443),
        scheme: Scheme::Https,
        host: Some("127.0.0.1".into()),
        headers: vec![header("hOST", "payments.local"), header("X-a", "1"), header("X-a", "")],
    };
    assert_eq!(http, expected);
}

#[test]
fn every_handler_round_trip() {
    let tcp =
        |host: Option<&str>| WorkloadHandler::TcpSocket { port: port(5432), host: host.map(str::to_owned) };
    let grpc = |service: &str| WorkloadHandler::Grpc { port: port(9000), service: service.into() };
    for (probe, handler, kind) in [
        (json!({"tcpSocket": {"port": 5432}}), tcp(None), "tcp"),
        (json!({"tcpSocket": {"port": 5432, "host": "::1"}}), tcp(Some("::1")), "tcp"),
        (json!({"tcpSocket": {"port": 5432, "host": "db_1.example."}}), tcp(Some("db_1.example.")), "tcp"),
        (json!({"grpc": {"port": 9000}}), grpc(""), "grpc"),
        (
            json!({"grpc": {"port": 9000, "service": "payments.v1.Payments"}}),
            grpc("payments.v1.Payments"),
            "grpc",
        ),
        (
            json!({"exec": {"command": ["/usr/local/bin/check", "--quick"]}}),
            WorkloadHandler::Exec { command: vec!["/usr/local/bin/check".into(), "--quick".into()] },
            "exec",
        ),
    ] {
        let found = accepted(&probe, &[]);
        assert_eq!((&found.handler, found.handler.kind()), (&handler, kind), "{probe}");
        assert_eq!(accepted(&found.to_json(), &[]), found, "{probe}");
    }
    for path in ["/a b?c d", "x", "/%20?%41", "/ü", ""] {
        let found = accepted(&json!({"httpGet": {"port": 1, "path": path}}), &[]);
        assert_eq!(accepted(&found.to_json(), &[]), found, "{path}");
    }
}

#[test]
fn defaults_are_written_out() {
    let found = accepted(&json!({"tcpSocket": {"port": 5432}}), &[]);
    let expected = json!({"initialDelaySeconds": 0, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1,
                          "failureThreshold": 3, "tcpSocket": {"port": 5432}});
    assert_eq!(found.to_json(), expected);
}

#[test]
fn request_paths() {
    for (declared, sent) in [
        ("/", "/"),
        ("ready", "/ready"),
        ("?x=1", "/?x=1"),
        ("#top", "/"),
        ("/a#b?c", "/a"),
        ("/a b\"<>", "/a%20b%22%3C%3E"),
        ("/ü", "/%C3%BC"),
        ("//other/x", "//other/x"),
        ("a:b", "/a:b"),
        ("/go?to=http://x/", "/go?to=http://x/"),
        ("1a://x", "/1a://x"),
    ] {
        assert_eq!(http(&json!({"port": 1, "path": declared})).path, sent, "{declared}");
    }
}

#[test]
fn exactly_one_handler() {
    const ONE: &str = ": exactly one of KINDS is required, found";
    check_rejected(json!({}), &[&format!("{ONE} none")]);
    check_rejected(json!({"grpc": {"port": 1}, "httpGet": {"port": 1}}), &[&format!("{ONE} httpGet, grpc")]);
    check_rejected(json!({"httpGet": null}), &[".httpGet: must not be empty"]);
    check_rejected(json!({"exec": null}), &[".exec: must not be empty"]);
    check_rejected(json!({"grpc": 5}), &[".grpc: expected an object, got 5"]);
    check_rejected(json!([]), &[": expected an object, got []"]);
}

#[test]
fn each_kind_is_written_as_it_is_read() {
    for kind in HandlerKind::ALL {
        let probe = accepted(&json!({kind.name(): {"port": 80}}), &[]);
        assert_eq!(probe.handler.network(), Some((kind, port(80))), "{}", kind.name());
        assert_eq!(accepted(&probe.to_json(), &[]), probe, "{}", kind.name());
    }
}

#[test]
fn numbers() {
    for (field, value, text) in [
        ("periodSeconds", json!(-1), "must be 0 or more, got -1"),
        ("timeoutSeconds", json!(1.5), "expected a whole number, got 1.5"),
        ("timeoutSeconds", json!(2_147_483_648_u64), "expected a whole number, got 2147483648"),
        ("initialDelaySeconds", json!("5"), "expected a whole number, got \"5\""),
        ("successThreshold", json!(true), "expected a whole number, got true"),
        ("failureThreshold", json!([1]), "expected a whole number, got [1]"),
    ] {
        check_rejected(json!({"tcpSocket": {"port": 1}, field: value}), &[&format!(".{field}: {text}")]);
    }
    for handler in ["httpGet", "tcpSocket", "grpc"] {
        for (value, text) in [
            (json!(null), "must be between 1 and 65535, got 0"),
            (json!(0), "must be between 1 and 65535, got 0"),
            (json!(-1), "must be between 1 and 65535, got -1"),
            (json!(65536), "must be between 1 and 65535, got 65536"),
            (json!("http"), "expected a whole number, got \"http\""),
            (json!("8080"), "expected a whole number, got \"8080\""),
            (json!(80.5), "expected a whole number, got 80.5"),
        ] {
            check_rejected(json!({handler: {"port": value}}), &[&format!(".{handler}.port: {text}")]);
        }
        for own in [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090] {
            check_rejected(
                json!({handler: {"port": own}}),
                &[&format!(".{handler}.port: {own} belongs to the proxy")],
            );
        }
    }
}

#[test]
fn invalid_http_handlers() {
    const TEN: &str = "must be an IP address or DNS name, got";
    let header = |name: &str, value: &str| json!([{ "name": name, "value": value }]);
    let set = |name: &str| format!(".httpHeaders[0].name: \"{name}\" is set by the prober");
    let mut rows = vec![
        ("scheme", json!("https"), ".scheme: must be HTTP or HTTPS, got \"https\"".to_owned()),
        ("scheme", json!("TCP"), ".scheme: must be HTTP or HTTPS, got \"TCP\"".to_owned()),
        ("path", json!("/%zz"), ".path: not a valid request path: bad escape %zz".to_owned()),
        ("path", json!("/%"), ".path: not a valid request path: bad escape %".to_owned()),
        ("path", json!("/a\nb"), ".path: not a valid request path: control byte 0x0a".to_owned()),
        (
            "path",
            json!("http://x/"),
            ".path: not a valid request path: an absolute URL; set host, port and scheme in their fields"
                .to_owned(),
        ),
        ("path", json!("x".repeat(8193)), ".path: not a valid request path: longer than 8 KiB".to_owned()),
        ("path", json!(5), ".path: expected a string, got 5".to_owned()),
        ("httpHeaders", json!({}), ".httpHeaders: expected a list, got {}".to_owned()),
        ("httpHeaders", json!([5]), ".httpHeaders[0]: expected an object, got 5".to_owned()),
        ("httpHeaders", json!([{}]), ".httpHeaders[0].name: must match [-_A-Za-z0-9]+".to_owned()),
        ("httpHeaders", header("a b", ""), ".httpHeaders[0].name: must match [-_A-Za-z0-9]+".to_owned()),
        (
            "httpHeaders",
            header("X", "a\rb"),
            ".httpHeaders[0].value: must not contain CR, LF or NUL".to_owned(),
        ),
        (
            "httpHeaders",
            header("X", "a\0"),
            ".httpHeaders[0].value: must not contain CR, LF or NUL".to_owned(),
        ),
        (
            "httpHeaders",
            header("X", "\u{1}"),
            ".httpHeaders[0].value: must not contain control characters".to_owned(),
        ),
        ("httpHeaders", header("host", "a/b"), ".httpHeaders[0].value: must be a host".to_owned()),
        (
            "httpHeaders",
            Value::Array(vec![json!({"name": "a"}); 101]),
            ".httpHeaders: must be at most 100 headers".to_owned(),
        ),
        ("httpHeaders", header("a", &"x".repeat(16384)), ".httpHeaders: must be at most 16 KiB".to_owned()),
    ];
    for host in ["10.0.0.1:80", "[::1]", "a b", "256.1.1.1", "-a", "a..b", "a/b", "häuser"] {
        let shown = if host.is_ascii() { host } else { "h\\xc3\\xa4user" };
        rows.push(("host", json!(host), format!(".host: {TEN} \"{shown}\"")));
    }
    for name in
        ["connection", "Content-Length", "transfer-encoding", "Upgrade", "te", "trailer", "expect", "Proxy-X"]
    {
        rows.push(("httpHeaders", header(name, ""), set(name)));
    }
    for (field, value, text) in rows {
        check_rejected(json!({"httpGet": {"port": 1, field: value}}), &[&format!(".httpGet{text}")]);
    }
}

#[test]
fn invalid_other_handlers() {
    for (handler, fields, text) in [
        (
            "tcpSocket",
            json!({"port": 1, "host": "10.0.0.1:80"}),
            ".host: must be an IP address or DNS name, got \"10.0.0.1:80\"",
        ),
        ("grpc", json!({"port": 1, "service": "x".repeat(257)}), ".service: must be at most 256 bytes"),
        ("grpc", json!({"port": 1, "service": []}), ".service: expected a string, got []"),
        ("exec", json!({}), ".command: must have at least one element"),
        ("exec", json!({"command": []}), ".command: must have at least one element"),
        ("exec", json!({"command": "ls"}), ".command: expected a list, got \"ls\""),
        ("exec", json!({"command": [""]}), ".command[0]: must not be empty"),
        ("exec", json!({"command": ["sh", 5]}), ".command[1]: expected a string, got 5"),
        ("exec", json!({"command": ["sh", "a\0b"]}), ".command[1]: must not contain NUL"),
    ] {
        check_rejected(json!({handler: fields}), &[&format!(".{handler}{text}")]);
    }
    assert!(parse(&json!({"grpc": {"port": 1, "service": "x".repeat(256)}})).0.is_some());
}

#[test]
fn all_errors_at_once() {
    check_rejected(
        json!({"periodSeconds": -1, "timeoutSeconds": "x", "httpGet": {"port": 0, "scheme": "ftp"}, "exec": {}, "tcpSocket": null}),
        &[
            ".timeoutSeconds: expected a whole number, got \"x\"",
            ".periodSeconds: must be 0 or more, got -1",
            ": exactly one of KINDS is required, found httpGet, tcpSocket, exec",
            ".httpGet.scheme: must be HTTP or HTTPS, got \"ftp\"",
            ".httpGet.port: must be between 1 and 65535, got 0",
            ".tcpSocket: must not be empty",
            ".exec.command: must have at least one element",
        ],
    );
}

#[test]
fn warnings() {
    accepted(
        &json!({"periodSecond": 1, "grpc": {"port": 1, "host": "x"}, "timeoutSeconds": 11}),
        &[
            ".periodSecond: unknown field, ignored",
            ".timeoutSeconds: 11 s is longer than the period of 10 s, so probes start less often",
            ".grpc.host: unknown field, ignored",
        ],
    );
    accepted(
        &json!({"httpGet": {"port": 1, "x\n": 1, "httpHeaders": [{"name": "a", "valueFrom": 1}]}}),
        &[
            ".httpGet.x\\x0a: unknown field, ignored",
            ".httpGet.httpHeaders[0].valueFrom: unknown field, ignored",
        ],
    );
}

/// Generates JSON whose keys are mostly those of a probe.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..100u64).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("HTTPS")),
    ];
    let handlers = super::HANDLERS.map(super::handler_name);
    let known = [super::SETTINGS.as_slice(), handlers.as_slice()].concat();
    let key = prop_oneof![
        prop::sample::select(known).prop_map(str::to_owned),
        prop::sample::select(vec![
            "port",
            "host",
            "path",
            "scheme",
            "httpHeaders",
            "name",
            "value",
            "service",
            "command"
        ])
        .prop_map(str::to_owned),
        ".{0,4}",
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_a_probe_or_a_list_of_errors(json in any_json()) {
        let (probe, lines) = parse(&json);
        prop_assert!(probe.is_some() || !lines.is_empty());
        for line in lines {
            prop_assert!(line.starts_with("spec.probe") && line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{}", line);
        }
        if let Some(probe) = probe {
            prop_assert_eq!(WorkloadProbe::parse(&probe.to_json()).map(|checked| checked.value), Ok(probe));
        }
    }
}

#[test]
fn limits_are_inclusive() {
    let path = format!("/{}", "a".repeat((8 << 10) - 1));
    assert_eq!(http(&json!({"port": 1, "path": path})).path, path);
    let headers = |count: usize, bytes: usize| {
        let header = json!({"name": "a", "value": " ".repeat(bytes / count - 1)});
        http(&json!({"port": 1, "httpHeaders": vec![header; count]})).headers.len()
    };
    assert_eq!((headers(100, 1000), headers(1, 16 << 10)), (100, 1));
    let timing = json!({"timeoutSeconds": 10, "periodSeconds": 10, "tcpSocket": {"port": 1}});
    assert_eq!(accepted(&timing, &[]).timeout, Duration::from_secs(10));
}

#[test]
fn headers_are_written_if_there_are_any() {
    let header = json!({"name": "X-Probe", "value": "a b"});
    let declared = json!({"httpGet": {"port": 1, "httpHeaders": [header]}});
    assert_eq!(accepted(&declared, &[]).to_json()["httpGet"]["httpHeaders"], json!([header]));
    assert_eq!(accepted(&json!({"httpGet": {"port": 1}}), &[]).to_json()["httpGet"].get("httpHeaders"), None);
}

#[test]
fn values_in_errors_are_cut_at_64_bytes() {
    for (length, shown) in [(62, format!("\"{}\"", "a".repeat(62))), (63, format!("\"{}...", "a".repeat(63)))]
    {
        let line = format!(".periodSeconds: expected a whole number, got {shown}");
        check_rejected(json!({"periodSeconds": "a".repeat(length), "tcpSocket": {"port": 1}}), &[&line]);
    }
}
