//! Tests of plugin configurations with the compiled filter: each is accepted, or rejected as a
//! whole with an error in the log, and none traps.

use probe::HandlerKind;
use wasm_host::Vm;
use wasm_host::scenario::Scenario;
use wasm_host::transcript::LogLevel;

use crate::support::{check, start_vm};

const REJECTED: &str = "app_health_config_rejected_total";

/// Configures a new VM, and returns it with whether it accepted the configuration, and its log.
fn configure(configuration: impl AsRef<[u8]>) -> (Vm, bool, Vec<(LogLevel, String)>) {
    let mut vm = start_vm();
    let accepted = vm.configure(configuration.as_ref()).unwrap();
    let log = vm.transcript().log();
    (vm, accepted, log)
}

/// A configuration whose prober table has this one prober.
fn with(prober: &str) -> String {
    format!(r#"{{"podIP": "10.0.0.5", "probers": {{"/app-health/app/livez": {prober}}}}}"#)
}

fn port(port: &str) -> String {
    with(&format!(r#"{{"httpGet": {{"port": {port}}}}}"#))
}

/// The prefix of every position in the table of [`with`].
const P: &str = r#"probers["/app-health/app/livez"]"#;

#[test]
fn a_rejected_configuration_names_key_value_and_reason() {
    let tcp = r#"{"tcpSocket": {"port": 80}}"#;
    let kinds = HandlerKind::ALL.map(HandlerKind::name).join(", ");
    let rows: Vec<(String, String)> = vec![
        (
            with(tcp).replace("10.0.0.5", "localhost"),
            r#"podIP = "localhost": must be an IPv4 or IPv6 address of the pod"#.into(),
        ),
        (
            with(tcp).replace(r#""podIP": "10.0.0.5","#, ""),
            "podIP = null: needed when there are probers".into(),
        ),
        ("[]".into(), r#"configuration = "[]": must be an object at line 1 column 1"#.into()),
        (with("null"), format!("{P} = null: must be an object")),
        (with("{}"), format!("{P} = {{}}: needs exactly one of {kinds}")),
        (
            with(r#"{"tcpSocket": {"port": 1}, "grpc": {"port": 2}}"#),
            format!(
                r#"{P} = {{"tcpSocket":{{"port":1}},"grpc":{{"port":2}}}}: needs exactly one of {kinds}"#
            ),
        ),
        (port("70000"), format!("{P}.httpGet.port = 70000: must be 1 to 65535")),
        (port("-1"), format!("{P}.httpGet.port = -1: must be 1 to 65535")),
        (port("null"), format!("{P}.httpGet.port = null: must be 1 to 65535")),
        (port(r#""http""#), format!(r#"{P}.httpGet.port = "http": must be an integer"#)),
        (port("80.0"), format!("{P}.httpGet.port = 80.0: must be an integer")),
        (port("15021"), format!("{P}.httpGet.port = 15021: is a port of the proxy")),
        (
            with(r#"{"tcpSocket": {"port": 80}, "timeoutSeconds": -1}"#),
            format!("{P}.timeoutSeconds = -1: must be 0 or more"),
        ),
        (
            with(r#"{"httpGet": {"port": 80, "scheme": "FTP"}}"#),
            format!(r#"{P}.httpGet.scheme = "FTP": must be HTTP or HTTPS"#),
        ),
        (
            with(r#"{"grpc": {"port": 80, "mode": "mTLS"}}"#),
            format!(r#"{P}.grpc.mode = "mTLS": must be Plaintext or TLS"#),
        ),
        (
            with(r#"{"httpGet": {"port": 80, "httpHeaders": [{"name": ":path", "value": "x"}]}}"#),
            format!(r#"{P}.httpGet.httpHeaders[0].name = ":path": must be a header name"#),
        ),
        (
            with(r#"{"httpGet": {"port": 80, "httpHeaders": [{"name": "a", "value": "a\r\nb"}]}}"#),
            format!(r#"{P}.httpGet.httpHeaders[0].value = "a\r\nb": must not contain CR, LF or NUL"#),
        ),
        (
            r#"{"probers": {"/app-health//livez": null}}"#.into(),
            "probers = \"/app-health//livez\": must be /app-health/<container>/{livez,readyz,startupz} or \
             /app-lifecycle/<container>/{prestopz,poststartz}"
                .into(),
        ),
    ];
    for (configuration, text) in rows {
        let (vm, accepted, log) = configure(&configuration);
        assert!(!accepted, "{configuration}");
        assert_eq!(log, [(LogLevel::Error, format!("plugin configuration rejected: {text}"))]);
        assert_eq!(vm.host().metrics.value(REJECTED), Some(1));
    }
}

#[test]
fn invalid_json_is_rejected_with_a_printable_message() {
    let rows: [&[u8]; 9] = [
        b"{",
        b"{} x",
        b"NaN",
        b"\xff",
        b"\0",
        b"{\"a\xff\": 1}",
        b"nul",
        b"{\"probers\": \"{\"}",
        b"{\"probers\": \"\\u0000\"}",
    ];
    for configuration in rows {
        let (_, accepted, log) = configure(configuration);
        let [(LogLevel::Error, line)] = log.as_slice() else { panic!("{log:?}") };
        assert!(!accepted && line.starts_with("plugin configuration rejected: "), "{line}");
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line}");
        assert!(line.contains("line 1 column"), "{line}");
    }
}

#[test]
fn a_configuration_without_probers_answers_404() {
    let rows = [
        "",
        "null",
        "{}",
        " \n",
        r#"{"probers": null}"#,
        r#"{"probers": {}}"#,
        r#"{"probers": ""}"#,
        r#"{"other": 1}"#,
    ];
    for configuration in rows {
        let (mut vm, accepted, log) = configure(configuration);
        assert!(accepted && log.is_empty(), "{configuration}: {log:?}");
        check(&mut vm, vec![(configuration, Scenario::get("/app-health/app/livez"), "404 unknown_probe")]);
        assert_eq!(vm.host().metrics.value(REJECTED), None);
    }
}

#[test]
fn the_table_may_be_a_string_and_a_host_is_a_warning() {
    let table = r#"{"/app-health/app/livez": {"tcpSocket": {"port": 80, "host": "elsewhere"}}}"#;
    let (mut vm, accepted, log) = configure(format!(r#"{{"podIP": "fd00::5", "probers": {table:?}}}"#));
    assert!(accepted);
    let warning = format!("{P}.tcpSocket.host: ignored, only the pod's own address is dialed");
    assert_eq!(log, [(LogLevel::Warn, warning)]);
    let (context, _) = vm.request(Scenario::get("/app-health/app/livez").head, true).unwrap();
    let head = &vm.stream(context).unwrap().request_headers;
    assert_eq!(crate::support::value(head, ":authority"), "[fd00::5]:80");
}

/// Nested arrays and objects, as a field that the filter ignores, and as the prober table.
#[test]
fn nesting_is_limited_to_32_levels() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    for (levels, fits) in [(1, true), (30, true), (31, true), (32, false), (127, false), (10_000, false)] {
        // The object around the value counts as a level too.
        for value in [nested(levels), objects(levels)] {
            let (_, accepted, log) = configure(format!(r#"{{"other": {value}}}"#));
            assert_eq!(accepted, fits, "{levels}: {log:?}");
            if !fits {
                assert_eq!(log[0].1, "plugin configuration rejected: configuration = …: more than 32 levels");
            }
        }
    }
    for levels in [31, 32, 33, 128, 10_000, 100_000] {
        let rows = [nested(levels), objects(levels), "[".repeat(levels), "{\"a\":".repeat(levels)];
        for value in rows {
            assert!(!configure(&value).1 || value.starts_with('{'), "{levels}");
            let (_, accepted, _) = configure(format!(r#"{{"podIP": "10.0.0.5", "probers": {value:?}}}"#));
            assert!(!accepted, "{levels}");
        }
    }
}

#[test]
fn sizes_have_limits() {
    let of_size = |size: usize| format!("{{{}}}", " ".repeat(size - 2));
    assert!(configure(of_size(1 << 20)).1);
    let (_, accepted, log) = configure(of_size((1 << 20) + 1));
    let text = "plugin configuration rejected: configuration = …: more than 1 MiB";
    assert_eq!((accepted, log), (false, vec![(LogLevel::Error, text.to_owned())]));
}

#[test]
fn ten_thousand_probers_are_accepted_and_one_more_is_rejected() {
    let table = |count: usize| {
        let rows: Vec<_> = (0..count)
            .map(|number| format!(r#""/app-health/c{number}/livez": {{"tcpSocket": {{"port": 80}}}}"#))
            .collect();
        format!(r#"{{"podIP": "10.0.0.5", "probers": {{{}}}}}"#, rows.join(","))
    };
    let mut vm = start_vm();
    // Each prober takes about 170,000 instructions.
    vm.host_mut().fuel = 5_000_000_000;
    assert!(vm.configure(table(10_000).as_bytes()).unwrap());
    let rows = vec![
        ("first", Scenario::get("/app-health/c0/livez").application::<&str>(200, []), "200"),
        ("last", Scenario::get("/app-health/c9999/livez").application::<&str>(200, []), "200"),
        ("other", Scenario::get("/app-health/c10000/livez"), "404 unknown_probe"),
    ];
    check(&mut vm, rows);
    let (_, accepted, log) = configure(table(10_001));
    assert!(!accepted);
    assert_eq!(log[0].1, "plugin configuration rejected: probers = …: more than 10000 probers");
}
