use std::net::IpAddr;

use proptest::prelude::*;

use super::{Clusters, PluginConfig};

const PROBER: &str = r#""/app-health/app/livez":{"tcpSocket":{"port":5432}}"#;

fn parse(text: &str) -> Result<PluginConfig, String> {
    PluginConfig::parse(text.as_bytes()).map_err(|error| error.to_string())
}

fn check_refused(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(parse(text).expect_err(text), *expected, "{text}");
    }
}

fn default_clusters() -> Clusters {
    Clusters {
        grpc: "app_health_grpc".into(),
        grpc_tls: "app_health_grpc_tls".into(),
        reuse_grpc: "app_health_reuse_grpc".into(),
        reuse_grpc_tls: "app_health_reuse_grpc_tls".into(),
        http: "app_health_callout_http".into(),
        https: "app_health_callout_https".into(),
    }
}

#[test]
fn an_empty_configuration_is_valid() {
    for text in [
        "",
        " \n",
        "null",
        " null ",
        "{}",
        r#"{"probers":null}"#,
        r#"{"probers":{}}"#,
        r#"{"probers":""}"#,
        r#"{"probers":" "}"#,
        r#"{"probers":"{}"}"#,
        r#"{"probers":"null"}"#,
        r#"{"podIP":null,"statusPort":null,"reservedPorts":null,"clusters":null,"reuseConnections":null,"hookCallers":null}"#,
        r#"{"unknown":[1,{"a":null}]}"#,
        // These keys are case-sensitive, so the following are unknown.
        r#"{"PodIP":"nonsense","Probers":7}"#,
    ] {
        let config = parse(text).expect(text);
        assert!(config.probers.is_empty() && config.warnings.is_empty() && config.pod_ip.is_none(), "{text}");
        assert!(!config.reuse_connections && config.hook_callers.0.is_none(), "{text}");
        assert_eq!(config.clusters, default_clusters());
        let own = |port| config.proxy_ports.contains(port);
        assert!(own(15020) && own(15090) && !own(8080) && !own(0), "{text}");
    }
}

#[test]
fn every_key_is_read() {
    let text = format!(
        r#"{{"podIP":"fd00::5","statusPort":16020,"reservedPorts":[19000,19001],
             "clusters":{{"grpc":"a","grpcTLS":"b","http":"c","https":"d","reuseGRPC":"e","reuseGRPCTLS":"f","more":1}},"reuseConnections":true,
             "hookCallers":["10.0.0.1","fd00::1"],
             "probers":{{{PROBER},"/app-health/app/readyz":{{"httpGet":{{"port":1,"host":"x"}}}}}}}}"#
    );
    let config = parse(&text).expect(&text);
    assert_eq!(config.pod_ip, "fd00::5".parse::<IpAddr>().ok());
    for (port, own) in [(16020, true), (15020, true), (19000, true), (19001, true), (19002, false)] {
        assert_eq!(config.proxy_ports.contains(port), own, "{port}");
    }
    let [grpc, grpc_tls, http, https, reuse_grpc, reuse_grpc_tls] =
        ["a", "b", "c", "d", "e", "f"].map(Into::into);
    assert_eq!(config.clusters, Clusters { grpc, grpc_tls, reuse_grpc, reuse_grpc_tls, http, https });
    assert!(config.reuse_connections);
    let callers: Vec<IpAddr> = ["10.0.0.1", "fd00::1"].map(|text| text.parse().unwrap()).into();
    assert_eq!(config.hook_callers.0, Some(callers));
    assert_eq!(config.probers.iter().count(), 2);
    let warning =
        r#"probers["/app-health/app/readyz"].httpGet.host: ignored, only the pod's own address is dialed"#;
    assert_eq!(config.warnings, [warning]);
    let some = parse(r#"{"clusters":{"grpcTLS":"b","http":null}}"#).expect("some clusters");
    assert_eq!(some.clusters, Clusters { grpc_tls: "b".into(), ..default_clusters() });
}

#[test]
fn the_table_may_be_a_string() {
    let table = format!("{{{PROBER}}}");
    let string = serde_json::Value::from(table.as_str()).to_string();
    let config = |probers: &str| parse(&format!(r#"{{"podIP":"10.0.0.5","probers":{probers}}}"#));
    assert_eq!(config(&string), config(&table));
    check_refused(&[
        (r#"{"probers":"{"}"#, r#"probers = "{": EOF while parsing an object at line 1 column 1"#),
        (r#"{"probers":"{} x"}"#, r#"probers = "{} x": trailing characters at line 1 column 4"#),
        (r#"{"probers":"[]"}"#, "probers = []: must be an object"),
        (r#"{"probers":"\"{}\""}"#, r#"probers = "{}": must be an object"#),
        (r#"{"probers":[]}"#, "probers = []: must be an object"),
        (r#"{"probers":7}"#, "probers = 7: must be an object"),
        (
            r#"{"probers":"{\"/x\":1}"}"#,
            "probers = \"/x\": must be /app-health/<container>/{livez,readyz,startupz} \
                                         or /app-lifecycle/<container>/{prestopz,poststartz}",
        ),
    ]);
}

#[test]
fn pod_addresses() {
    for (address, valid) in [
        ("10.0.0.5", true),
        ("127.0.0.1", true),
        ("fd00::5", true),
        ("::1", true),
        ("::ffff:10.0.0.5", true),
        ("localhost", false),
        ("", false),
        ("[::1]", false),
        ("fe80::1%eth0", false),
        ("0.0.0.0", false),
        ("::", false),
        ("224.0.0.1", false),
        ("ff02::1", false),
        ("255.255.255.255", false),
        ("10.0.0", false),
        ("010.0.0.5", false),
        ("10.0.0.5 ", false),
        ("10.0.0.5:80", false),
        ("10.0.0.0/8", false),
    ] {
        let error = format!("podIP = \"{address}\": must be an IPv4 or IPv6 address of the pod");
        for probers in ["{}".to_owned(), format!("{{{PROBER}}}")] {
            let result = parse(&format!(r#"{{"podIP":"{address}","probers":{probers}}}"#));
            assert_eq!(result.err(), (!valid).then(|| error.clone()), "{address}");
        }
    }
    check_refused(&[
        (&format!(r#"{{"probers":{{{PROBER}}}}}"#), "podIP = null: needed when there are probers"),
        (r#"{"podIP":5}"#, "podIP = 5: must be an IPv4 or IPv6 address of the pod"),
        (r#"{"podIP":["10.0.0.5"]}"#, r#"podIP = ["10.0.0.5"]: must be an IPv4 or IPv6 address of the pod"#),
    ]);
}

#[test]
fn ports_and_clusters() {
    check_refused(&[
        (r#"{"statusPort":0}"#, "statusPort = 0: must be 1 to 65535"),
        (r#"{"statusPort":65536}"#, "statusPort = 65536: must be 1 to 65535"),
        (r#"{"statusPort":"15020"}"#, r#"statusPort = "15020": must be an integer"#),
        (r#"{"reservedPorts":19000}"#, "reservedPorts = 19000: must be an array"),
        (r#"{"reservedPorts":[1,-1]}"#, "reservedPorts[1] = -1: must be 1 to 65535"),
        (r#"{"reservedPorts":[null]}"#, "reservedPorts[0] = null: must be an integer"),
        (r#"{"clusters":[]}"#, "clusters = []: must be an object"),
        (r#"{"hookCallers":"10.0.0.1"}"#, r#"hookCallers = "10.0.0.1": must be an array"#),
        (r#"{"hookCallers":["node"]}"#, r#"hookCallers = "node": must be an IPv4 or IPv6 address"#),
        (r#"{"hookCallers":[7]}"#, "hookCallers = 7: must be an IPv4 or IPv6 address"),
        (r#"{"reuseConnections":"true"}"#, r#"reuseConnections = "true": must be true or false"#),
        (r#"{"clusters":{"grpc":1}}"#, "clusters.grpc = 1: must be a string"),
        (r#"{"clusters":{"https":""}}"#, r#"clusters.https = "": must be the name of a cluster"#),
        (r#"{"clusters":{"grpc":"a","grpc":"b"}}"#, r#"clusters = {"grpc":"a","grpc":"b"}: duplicate key"#),
        (
            r#"{"statusPort":1,"statusPort":2}"#,
            r#"configuration = {"statusPort":1,"statusPort":2}: duplicate key"#,
        ),
        (
            r#"{"podIP":"10.0.0.5","statusPort":5432,"probers":{"/app-health/app/livez":{"tcpSocket":{"port":5432}}}}"#,
            r#"probers["/app-health/app/livez"].tcpSocket.port = 5432: is a port of the proxy"#,
        ),
    ]);
}

#[test]
fn configurations_that_are_not_a_json_object() {
    for (bytes, expected) in [
        (b"{".as_slice(), r#"configuration = "{": EOF while parsing an object at line 1 column 1"#),
        (b"{\n\"a\":", r#"configuration = "{\n\"a\":": EOF while parsing a value at line 2 column 4"#),
        (b"{} {}", r#"configuration = "{} {}": trailing characters at line 1 column 4"#),
        (b"{,}", r#"configuration = "{,}": key must be a string at line 1 column 2"#),
        (b"NaN", r#"configuration = "NaN": expected value at line 1 column 1"#),
        (br#"{"a":NaN}"#, r#"configuration = "{\"a\":NaN}": expected value at line 1 column 6"#),
        (b"[]", r#"configuration = "[]": must be an object at line 1 column 1"#),
        (b"7", r#"configuration = "7": must be an object at line 1 column 1"#),
        (b"\"{}\"", r#"configuration = "\"{}\"": must be an object at line 1 column 1"#),
        (b"\"\xff\"", r#"configuration = "\"\ufffd\"": invalid unicode code point at line 1 column 2"#),
        (b"\xff", r#"configuration = "\ufffd": expected value at line 1 column 1"#),
        (b"\0", r#"configuration = "\u0000": expected value at line 1 column 1"#),
    ] {
        let error = PluginConfig::parse(bytes).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn size_and_depth() {
    let padded = |bytes: usize| format!("{{\"x\":\"{}\"}}", "a".repeat(bytes - 8));
    let nested = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    let inner = |levels: usize| {
        let table = format!("{{\"x\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        serde_json::json!({"probers": table}).to_string()
    };
    for (text, expected) in [
        (padded(1 << 20), None),
        (padded((1 << 20) + 1), Some("configuration = …: more than 1 MiB")),
        (nested(31), None),
        (nested(32), None),
        (nested(33), Some("configuration = …: more than 32 levels")),
        (nested(128), Some("configuration = …: more than 32 levels")),
        (nested(300_000), Some("configuration = …: more than 32 levels")),
        (inner(33), Some("probers = …: more than 32 levels")),
    ] {
        assert_eq!(parse(&text).err().as_deref(), expected);
    }
    assert!(
        parse(&inner(32)).expect_err("no probe path").starts_with("probers = \"x\": must be /app-health/")
    );
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = PluginConfig::parse(&bytes);
    }

    #[test]
    fn arbitrary_json_is_parsed_or_rejected(
        key in "podIP|statusPort|reservedPorts|clusters|probers|x",
        value in json(),
        prober in json(),
    ) {
        let texts = [
            format!(r#"{{"{key}":{value}}}"#),
            format!(r#"{{"podIP":"10.0.0.5","probers":{{"/app-health/app/livez":{prober}}}}}"#),
            serde_json::json!({"probers": value.to_string()}).to_string(),
        ];
        for text in texts {
            let outcome = parse(&text);
            prop_assert_eq!(&outcome, &parse(&text), "parsing is deterministic");
            if let Err(error) = outcome {
                prop_assert!(error.contains(" = ") && error.contains(": "), "{}", error);
            }
        }
    }
}

/// Generates values of every shape, with the field names of the probers as keys.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        (1..70_000u32).prop_map(Into::into),
        "[ -~é\\n]{0,80}".prop_map(Into::into),
        "HTTPS?|TLS|10.0.0.5".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = "httpGet|tcpSocket|gRPC|port|path|scheme|httpHeaders|name|value|timeoutSeconds|host|mode|grpcTLS|[a-z]";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}
