use std::time::Duration;

use proptest::prelude::*;

use super::AppProbers;
use crate::{
    Grpc, GrpcMode, Handler, HandlerKind, Header, HttpGet, PluginConfig, ProbePath, Prober, Scheme, TcpSocket,
};

fn read(table: &str) -> Result<AppProbers, String> {
    let text = format!(r#"{{"podIP":"10.0.0.5","probers":{table}}}"#);
    PluginConfig::parse(text.as_bytes()).map(|config| config.probers).map_err(|error| error.to_string())
}

const FORMS: &str = "must be /app-health/<container>/{livez,readyz,startupz} \
                     or /app-lifecycle/<container>/{prestopz,poststartz}";

#[test]
fn keys_are_probe_paths() {
    for key in [
        "/app-health/app/health",
        "/app-health//livez",
        "",
        "/app-health/app/livez/",
        "/APP-HEALTH/app/livez",
    ] {
        let error = read(&format!(r#"{{"{key}":{{"tcpSocket":{{"port":1}}}}}}"#)).expect_err(key);
        assert_eq!(error, format!("probers = \"{key}\": {FORMS}"));
    }
    let error = read(r#"{"/app-health/\u00e9\n/livez":null}"#).expect_err("no container's name");
    assert_eq!(error, format!(r#"probers = "/app-health/\u00e9\n/livez": {FORMS}"#));
}

#[test]
fn any_key_accepts_any_handler() {
    let table = r#"{
        "/app-lifecycle/b/prestopz": {"tcpSocket": {"port": 2}},
        "/app-health/b/readyz": {"httpGet": {"port": 3}},
        "/app-health/a/startupz": {"grpc": {"port": 4}},
        "/app-health/b/livez": {"tcpSocket": {"port": 1}}
    }"#;
    let probers = read(table).expect("a table");
    let ports: Vec<_> = probers.iter().map(|(path, prober)| (path.to_string(), prober.port())).collect();
    let expected = [
        ("/app-health/a/startupz", 4),
        ("/app-health/b/livez", 1),
        ("/app-health/b/readyz", 3),
        ("/app-lifecycle/b/prestopz", 2),
    ];
    assert_eq!(ports, expected.map(|(path, port)| (path.to_owned(), port)), "sorted by container and kind");
    assert!(!probers.is_empty() && AppProbers::default().is_empty());
}

#[test]
fn each_kind_is_written_as_it_is_read() {
    for kind in HandlerKind::ALL {
        let name = kind.name();
        let probers =
            read(&format!(r#"{{"/app-health/a/livez": {{"{name}": {{"port": 80}}}}}}"#)).expect(name);
        let json = probers.to_json();
        assert!(json.contains(&format!("\"{name}\":{{")), "{name}: {json}");
        assert_eq!(read(&json).as_ref(), Ok(&probers), "{name}: {json}");
    }
}

#[test]
fn the_first_error_by_key_order_is_returned() {
    let rows = [
        r#""/app-health/a/livez":null"#,
        r#""/app-health/b/livez":7"#,
        r#""/app-health/c/livez":{}"#,
        r#""/nowhere":{}"#,
    ];
    for turn in 0..rows.len() {
        let mut rows = rows;
        rows.rotate_left(turn);
        let error = read(&format!("{{{}}}", rows.join(","))).expect_err("four errors");
        assert_eq!(error, r#"probers["/app-health/a/livez"] = null: must be an object"#);
    }
}

#[test]
fn duplicate_paths_are_rejected() {
    let path = "/app-health/app/livez";
    for (table, value) in [
        (
            format!(r#"{{"{path}":{{"grpc":{{"port":1}}}},"{path}":{{"grpc":{{"port":2}}}}}}"#),
            r#"{"grpc":{"port":2}}"#,
        ),
        (
            format!(
                r#"{{"{path}":{{"grpc":{{"port":1}}}},"/app-health\/app\u002flivez":{{"tcpSocket":{{"port":1}}}}}}"#
            ),
            r#"{"tcpSocket":{"port":1}}"#,
        ),
    ] {
        assert_eq!(read(&table).expect_err(&table), format!("probers[\"{path}\"] = {value}: duplicate key"));
    }
    let other_case =
        r#"{"/app-health/app/livez":{"grpc":{"port":1}},"/app-health/APP/livez":{"grpc":{"port":1}}}"#;
    assert!(read(other_case).is_ok(), "containers are case-sensitive");
}

#[test]
fn long_keys_are_printed_completely() {
    let path = format!("/app-health/{}/livez", "a".repeat(253));
    let error = read(&format!(r#"{{"{path}":null}}"#)).expect_err("null");
    assert_eq!(error, format!("probers[\"{path}\"] = null: must be an object"));
}

#[test]
fn at_most_10_000_probers() {
    let table = |number: u32| {
        let row = |index| format!(r#""/app-health/c{index}/livez":{{"grpc":{{"port":1}}}}"#);
        format!("{{{}}}", (0..number).map(row).collect::<Vec<_>>().join(","))
    };
    assert_eq!(read(&table(10_000)).map(|probers| probers.iter().count()), Ok(10_000));
    assert_eq!(read(&table(10_001)), Err("probers = …: more than 10000 probers".into()));
}

#[test]
fn the_table_as_json() {
    for (table, expected) in [
        ("{}", "{}"),
        (
            r#"{"/app-health/app/livez":{"HTTPGET":{"port":8080}}}"#,
            r#"{"/app-health/app/livez":{"httpGet":{"httpHeaders":[],"path":"","port":8080,"scheme":"HTTP"},"timeoutSeconds":1}}"#,
        ),
        (
            r#"{"/app-lifecycle/app/prestopz":{"tcpSocket":{"port":1,"host":"x"}},"/app-health/z/livez":{"grpc":{"port":1,"mode":"tls"},"timeoutSeconds":7}}"#,
            r#"{"/app-health/z/livez":{"grpc":{"mode":"TLS","port":1,"service":""},"timeoutSeconds":7},"/app-lifecycle/app/prestopz":{"tcpSocket":{"port":1},"timeoutSeconds":86400}}"#,
        ),
    ] {
        assert_eq!(read(table).expect(table).to_json(), expected);
    }
}

fn handler() -> impl Strategy<Value = Handler> {
    let port = 1..14_000u16;
    let header = ("[a-zA-Z0-9!#$%&'*+.^_`|~]{1,8}", "[ -~\\té]{0,12}")
        .prop_map(|(name, value)| Header { name, value })
        .prop_filter("a Host header is validated differently", |header| !header.has_name("host"));
    let scheme = prop_oneof![Just(Scheme::Http), Just(Scheme::Https)];
    let mode = prop_oneof![Just(GrpcMode::Plaintext), Just(GrpcMode::Tls)];
    let http =
        ("(/[!-~é ]{0,12})?(\\?[a-z&=%]{0,6})?", port.clone(), scheme, prop::collection::vec(header, 0..4))
            .prop_map(|(path, port, scheme, headers)| HttpGet { path, port, scheme, headers })
            .prop_filter("no user name and no space in the query", |http| !http.path.contains(['@', ' ']));
    let grpc = (port.clone(), ".{0,12}", mode).prop_map(|(port, service, mode)| Grpc { port, service, mode });
    prop_oneof![
        http.prop_map(Handler::HttpGet),
        port.prop_map(|port| Handler::TcpSocket(TcpSocket { port })),
        grpc.prop_map(Handler::Grpc),
    ]
}

fn probers() -> impl Strategy<Value = AppProbers> {
    let path = "/app-health/[a-z0-9._-]{1,8}/(livez|readyz|startupz)|/app-lifecycle/[A-Z]{1,3}/(prestopz|poststartz)";
    let path = path.prop_map(|path| ProbePath::parse(&path).expect("a probe path"));
    let prober = (handler(), 1..=86_400u64)
        .prop_map(|(handler, seconds)| Prober { handler, timeout: Duration::from_secs(seconds) });
    prop::collection::vec((path, prober), 0..5).prop_map(|entries| entries.into_iter().collect())
}

proptest! {
    #[test]
    fn the_table_round_trips(probers in probers()) {
        let json = probers.to_json();
        prop_assert_eq!(read(&json), Ok(probers.clone()));
        // The environment variable holds the probers as a string.
        prop_assert_eq!(read(&serde_json::Value::from(json).to_string()), Ok(probers));
    }
}

#[test]
fn at_most_1_mib() {
    let parse = |bytes: usize| {
        let (ports, text) = (crate::ProxyPorts::default(), " ".repeat(bytes));
        AppProbers::parse(&text, &ports, &mut Vec::new()).map_err(|error| error.to_string())
    };
    assert_eq!(parse(1 << 20), Ok(AppProbers::default()));
    assert!(parse((1 << 20) + 1).is_err_and(|error| error.contains("1 MiB")));
}

#[test]
fn a_table_can_be_collected() {
    let probers = read(r#"{"/app-health/app/livez": {"tcpSocket": {"port": 1}}}"#).expect("a table");
    let entries = probers.iter().map(|(path, prober)| (path.clone(), prober.clone()));
    assert_eq!(entries.collect::<AppProbers>(), probers);
}
