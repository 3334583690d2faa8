//! Tests of the filter's metrics and log: names, values, log lines only for changes, and no text of
//! a caller or of the application.

use std::time::Duration;

use wasm_host::Vm;
use wasm_host::life::Life;
use wasm_host::lives::{self, GRPC, HOOK, HTTP, SECRET, TABLE, TCP};
use wasm_host::transcript::LogLevel;

use crate::kit::{forget, probing, started, with_table};

const LIVEZ: &str = "/app-health/app/livez";

/// Checks the values of metrics, whose names are given without the prefix `app_health_`.
fn check(vm: &Vm, rows: &[(&str, Option<u64>)]) {
    for (name, value) in rows {
        assert_eq!(vm.host().metrics.value(&format!("app_health_{name}")), *value, "{name}");
    }
}

fn ok(path: &str) -> Life {
    Life::get(path).application::<&str>(200, [])
}

fn refused(path: &str) -> Life {
    let details = "upstream_reset_before_response_started{remote_connection_failure}";
    Life::get(path).envoy(503, details, "delayed_connect_error:_Connection_refused")
}

fn live(vm: &mut Vm, lives: impl IntoIterator<Item = Life>) {
    for life in lives {
        life.live(vm).unwrap();
    }
}

fn lines(vm: &Vm) -> Vec<(LogLevel, String)> {
    vm.transcript().log()
}

#[test]
fn series_are_there_before_the_first_probe_and_gauges_have_kubelets_initial_results() {
    let tcp = r#"{"tcpSocket": {"port": 80}}"#;
    let paths = ["/app-health/a/livez", "/app-health/a/readyz", "/app-health/a/startupz"];
    let hooks = ["/app-lifecycle/a/prestopz", "/app-lifecycle/a/poststartz"];
    let vm =
        probing(&[paths.as_slice(), &hooks].concat().iter().map(|path| (*path, tcp)).collect::<Vec<_>>());
    check(
        &vm,
        &[
            ("probe_success;container=a;kind=livez", Some(1)),
            ("probe_success;container=a;kind=readyz", Some(0)),
            ("probe_success;container=a;kind=startupz", Some(0)),
            ("probe_success;container=a;kind=prestopz", Some(1)),
            ("probe_success;container=a;kind=poststartz", Some(1)),
            ("probes_total;container=a;kind=livez;reason=ok", None),
        ],
    );
    assert_eq!(vm.host().metrics.names().len(), 10);
}

#[test]
fn each_answer_is_counted_once_with_its_reason() {
    let mut vm = with_table();
    live(&mut vm, [ok(HTTP), ok(HTTP).chunk("body", true), refused(HTTP), ok(HTTP)]);
    live(&mut vm, [Life::get(TCP).with(":method", "POST"), Life::get(TCP)]);
    live(&mut vm, [Life::get(GRPC).callout(lives::grpc(Some(2), "0")), refused(HOOK)]);
    live(&mut vm, [Life::get("/app-health/other/livez"), Life::get("/other")]);
    check(
        &vm,
        &[
            ("probes_total;container=app;kind=readyz;reason=ok", Some(3)),
            ("probes_total;container=app;kind=readyz;reason=refused", Some(1)),
            ("probe_success;container=app;kind=readyz", Some(1)),
            ("probes_total;container=app;kind=livez;reason=method", Some(1)),
            ("probes_total;container=app;kind=livez;reason=ok", None),
            ("probes_total;container=api;kind=startupz;reason=grpc_not_serving", Some(1)),
            ("probe_success;container=api;kind=startupz", Some(0)),
            ("probes_total;container=app;kind=prestopz;reason=refused", Some(1)),
            ("probe_success;container=app;kind=prestopz", Some(0)),
            ("unknown_probes_total", Some(1)),
            ("config_rejected_total", None),
        ],
    );
}

#[test]
fn values_outlive_a_change_of_the_configuration() {
    let mut vm = with_table();
    live(&mut vm, [ok(HTTP), refused(TCP)]);
    assert!(!vm.configure(b"[]").unwrap());
    assert!(vm.configure(TABLE).unwrap());
    live(&mut vm, [ok(HTTP)]);
    check(
        &vm,
        &[
            ("probes_total;container=app;kind=readyz;reason=ok", Some(2)),
            ("probe_success;container=app;kind=readyz", Some(1)),
            ("probe_success;container=app;kind=livez", Some(0)),
            ("config_rejected_total", Some(1)),
        ],
    );
}

#[test]
fn a_thousand_unknown_paths_make_one_series_and_no_line() {
    let mut vm = with_table();
    let before = vm.host().metrics.names();
    for number in 0..1_000 {
        live(&mut vm, [Life::get(format!("/app-health/evil-{number}%0a/livez"))]);
    }
    let new: Vec<_> = vm.host().metrics.names().into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(new, ["app_health_unknown_probes_total"]);
    check(&vm, &[("unknown_probes_total", Some(1_000))]);
    assert_eq!(lines(&vm), []);
}

#[test]
fn labels_come_from_the_table_and_the_words_alone() {
    let mut vm = with_table();
    for (_, life) in lives::all() {
        live(&mut vm, [life]);
    }
    // 20 counters and one gauge for each of the four probers, and two metrics of the filter itself.
    let names = vm.host().metrics.names();
    assert!(names.len() <= 4 * 21 + 2, "{names:#?}");
    let allowed = |byte: u8| byte.is_ascii_lowercase() || b"_;=".contains(&byte);
    assert!(names.iter().all(|name| name.bytes().all(allowed)), "{names:#?}");
}

#[test]
fn a_line_comes_when_the_reason_changes() {
    use LogLevel::{Info, Warn};
    let mut vm = with_table();
    live(&mut vm, [ok(HTTP), ok(HTTP), refused(HTTP), refused(HTTP), Life::get(HTTP).with(":method", "PUT")]);
    live(&mut vm, [refused(TCP), ok(TCP), ok(HTTP)]);
    let expected = [
        (Warn, "probe app/readyz: refused, was ok"),
        (Warn, "probe app/livez: refused"),
        (Info, "probe app/livez: ok, was refused"),
        (Info, "probe app/readyz: ok, was refused"),
    ];
    assert_eq!(lines(&vm), expected.map(|(level, text)| (level, text.to_owned())));
}

#[test]
fn ten_lines_a_minute_and_then_how_many_were_not_written() {
    let mut vm = with_table();
    live(&mut vm, [ok(LIVEZ)]);
    for _ in 0..12 {
        live(&mut vm, [refused(LIVEZ), ok(LIVEZ)]);
    }
    assert_eq!(lines(&vm).len(), 10);
    forget(&mut vm);
    vm.host_mut().now += Duration::from_secs(59);
    live(&mut vm, [refused(LIVEZ)]);
    assert_eq!(lines(&vm), []);
    vm.host_mut().now += Duration::from_secs(1);
    live(&mut vm, [ok(LIVEZ), refused(LIVEZ)]);
    let expected = [
        (LogLevel::Warn, "15 lines about probes were suppressed"),
        (LogLevel::Info, "probe app/livez: ok, was refused"),
        (LogLevel::Warn, "probe app/livez: refused, was ok"),
    ];
    assert_eq!(lines(&vm), expected.map(|(level, text)| (level, text.to_owned())));
}

#[test]
fn no_byte_of_a_caller_or_the_application_is_logged() {
    let mut vm = started();
    let warned = r#"{"podIP": "10.0.0.5", "probers": {"/app-health/app/livez": {"httpGet": {"port": 80, "host": "evil"}}}}"#;
    assert!(vm.configure(warned.as_bytes()).unwrap());
    let odd = [&b"%0aevil"[..], b"\nevil", b"evil\"", b"\x1b[31mevil", b"\0evil", b"evil\xff\x80"];
    for evil in odd {
        let location = [b"http://[", evil].concat();
        let heads = [
            Life::get([b"/app-health/", evil].concat()),
            Life::get([LIVEZ.as_bytes(), b"?", evil].concat()).with("user-agent", evil).with("host", evil),
            Life::get(LIVEZ).with(":method", evil),
            Life::get(LIVEZ).application(302, [("location", &location[..]), ("server", evil)]),
            Life::get(LIVEZ).application(500, [("server", evil)]).chunk(evil, true),
            Life::get(LIVEZ).envoy(503, &String::from_utf8_lossy(evil), &String::from_utf8_lossy(evil)),
            Life::get(LIVEZ).application(302, [("location", "/a")]).callout(lives::hop(503, "", "evil")),
        ];
        live(&mut vm, heads);
        vm.host_mut().now += Duration::from_secs(60);
    }
    for (_, life) in lives::all() {
        live(&mut vm, [life]);
    }
    let written = lines(&vm);
    assert!(written.len() > 20, "{written:#?}");
    for (_, line) in written {
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
        assert!(!line.contains("evil") && !line.contains(SECRET), "{line}");
    }
}
