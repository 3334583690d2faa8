//! Tests of the filter's metrics and log: names, values, log lines only for changes, and no text of
//! a caller or of the application.

use std::time::Duration;

use wasm_host::Vm;
use wasm_host::scenario::Scenario;
use wasm_host::scenarios::{self, GRPC, HOOK, HTTP, SECRET, TABLE, TCP};
use wasm_host::transcript::LogLevel;

use crate::support::{clear, start_vm, vm_with_probers, vm_with_table};

const LIVEZ: &str = "/app-health/app/livez";

/// Checks the values of metrics, whose names are given without the prefix `app_health_`.
fn check(vm: &Vm, rows: &[(&str, Option<u64>)]) {
    for (name, value) in rows {
        assert_eq!(vm.host().metrics.value(&format!("app_health_{name}")), *value, "{name}");
    }
}

fn ok(path: &str) -> Scenario {
    Scenario::get(path).application::<&str>(200, [])
}

fn refused(path: &str) -> Scenario {
    let details = "upstream_reset_before_response_started{remote_connection_failure}";
    Scenario::get(path).envoy(503, details, "delayed_connect_error:_Connection_refused")
}

fn run_all(vm: &mut Vm, scenarios: impl IntoIterator<Item = Scenario>) {
    for scenario in scenarios {
        scenario.run(vm).unwrap();
    }
}

fn lines(vm: &Vm) -> Vec<(LogLevel, String)> {
    vm.transcript().log()
}

#[test]
fn series_exist_before_the_first_probe_with_kubelets_initial_results() {
    let tcp = r#"{"tcpSocket": {"port": 80}}"#;
    let paths = ["/app-health/a/livez", "/app-health/a/readyz", "/app-health/a/startupz"];
    let hooks = ["/app-lifecycle/a/prestopz", "/app-lifecycle/a/poststartz"];
    let vm = vm_with_probers(
        &[paths.as_slice(), &hooks].concat().iter().map(|path| (*path, tcp)).collect::<Vec<_>>(),
    );
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
fn each_result_is_counted_once_with_its_reason() {
    let mut vm = vm_with_table();
    run_all(&mut vm, [ok(HTTP), ok(HTTP).chunk("body", true), refused(HTTP), ok(HTTP)]);
    run_all(&mut vm, [Scenario::get(TCP).with(":method", "POST"), Scenario::get(TCP)]);
    run_all(&mut vm, [Scenario::get(GRPC).callout(scenarios::grpc(Some(2), "0")), refused(HOOK)]);
    run_all(&mut vm, [Scenario::get("/app-health/other/livez"), Scenario::get("/other")]);
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
fn counters_keep_their_values_when_the_configuration_changes() {
    let mut vm = vm_with_table();
    run_all(&mut vm, [ok(HTTP), refused(TCP)]);
    assert!(!vm.configure(b"[]").unwrap());
    assert!(vm.configure(TABLE).unwrap());
    run_all(&mut vm, [ok(HTTP)]);
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
fn unknown_paths_share_one_series_and_log_nothing() {
    let mut vm = vm_with_table();
    let before = vm.host().metrics.names();
    for number in 0..1_000 {
        run_all(&mut vm, [Scenario::get(format!("/app-health/evil-{number}%0a/livez"))]);
    }
    let new: Vec<_> = vm.host().metrics.names().into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(new, ["app_health_unknown_probes_total"]);
    check(&vm, &[("unknown_probes_total", Some(1_000))]);
    assert_eq!(lines(&vm), []);
}

#[test]
fn labels_contain_only_values_of_the_configuration() {
    let mut vm = vm_with_table();
    for (_, scenario) in scenarios::all() {
        run_all(&mut vm, [scenario]);
    }
    // 20 counters and one gauge for each of the four probers, and two metrics of the filter itself.
    let names = vm.host().metrics.names();
    assert!(names.len() <= 4 * 21 + 2, "{names:#?}");
    let allowed = |byte: u8| byte.is_ascii_lowercase() || b"_;=".contains(&byte);
    assert!(names.iter().all(|name| name.bytes().all(allowed)), "{names:#?}");
}

#[test]
fn a_change_of_the_reason_is_logged() {
    use LogLevel::{Info, Warn};
    let mut vm = vm_with_table();
    run_all(
        &mut vm,
        [ok(HTTP), ok(HTTP), refused(HTTP), refused(HTTP), Scenario::get(HTTP).with(":method", "PUT")],
    );
    run_all(&mut vm, [refused(TCP), ok(TCP), ok(HTTP)]);
    let expected = [
        (Warn, "probe app/readyz: refused, was ok"),
        (Warn, "probe app/livez: refused"),
        (Info, "probe app/livez: ok, was refused"),
        (Info, "probe app/readyz: ok, was refused"),
    ];
    assert_eq!(lines(&vm), expected.map(|(level, text)| (level, text.to_owned())));
}

#[test]
fn ten_lines_per_minute_are_logged_then_the_number_of_suppressed_ones() {
    let mut vm = vm_with_table();
    run_all(&mut vm, [ok(LIVEZ)]);
    for _ in 0..12 {
        run_all(&mut vm, [refused(LIVEZ), ok(LIVEZ)]);
    }
    assert_eq!(lines(&vm).len(), 10);
    clear(&mut vm);
    vm.host_mut().now += Duration::from_secs(59);
    run_all(&mut vm, [refused(LIVEZ)]);
    assert_eq!(lines(&vm), []);
    vm.host_mut().now += Duration::from_secs(1);
    run_all(&mut vm, [ok(LIVEZ), refused(LIVEZ)]);
    let expected = [
        (LogLevel::Warn, "15 lines about probes were suppressed"),
        (LogLevel::Info, "probe app/livez: ok, was refused"),
        (LogLevel::Warn, "probe app/livez: refused, was ok"),
    ];
    assert_eq!(lines(&vm), expected.map(|(level, text)| (level, text.to_owned())));
}

#[test]
fn no_data_of_a_client_or_the_application_is_logged() {
    let mut vm = start_vm();
    let warned = r#"{"podIP": "10.0.0.5", "probers": {"/app-health/app/livez": {"httpGet": {"port": 80, "host": "evil"}}}}"#;
    assert!(vm.configure(warned.as_bytes()).unwrap());
    let odd = [&b"%0aevil"[..], b"\nevil", b"evil\"", b"\x1b[31mevil", b"\0evil", b"evil\xff\x80"];
    for evil in odd {
        let location = [b"http://[", evil].concat();
        let heads = [
            Scenario::get([b"/app-health/", evil].concat()),
            Scenario::get([LIVEZ.as_bytes(), b"?", evil].concat())
                .with("user-agent", evil)
                .with("host", evil),
            Scenario::get(LIVEZ).with(":method", evil),
            Scenario::get(LIVEZ).application(302, [("location", &location[..]), ("server", evil)]),
            Scenario::get(LIVEZ).application(500, [("server", evil)]).chunk(evil, true),
            Scenario::get(LIVEZ).envoy(503, &String::from_utf8_lossy(evil), &String::from_utf8_lossy(evil)),
            Scenario::get(LIVEZ)
                .application(302, [("location", "/a")])
                .callout(scenarios::hop(503, "", "evil")),
        ];
        run_all(&mut vm, heads);
        vm.host_mut().now += Duration::from_secs(60);
    }
    for (_, scenario) in scenarios::all() {
        run_all(&mut vm, [scenario]);
    }
    let written = lines(&vm);
    assert!(written.len() > 20, "{written:#?}");
    for (_, line) in written {
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
        assert!(!line.contains("evil") && !line.contains(SECRET), "{line}");
    }
}
