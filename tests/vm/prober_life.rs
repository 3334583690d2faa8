//! Tests of a running agent that probes: edits of its WorkloadGroup file, SIGSTOP, exec probes,
//! termination.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use kit::agent;
use kit::app::{App, answer};
use kit::envoy;
use kit::net;
use kit::sidecar::Builder;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::prober::{Plan, Vm, quick, write};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn is(name: &'static str, value: &'static str) -> impl Fn(&Value) -> bool {
    move |view| view[name] == value
}

#[tokio::test]
async fn an_edited_file_acts_without_a_flap() {
    let plan = Plan::new("vm-edit");
    let app = App::start(plan.ip, answer(OK)).await;
    let probe = |path: &str| quick("httpGet", json!({"port": app.port(), "path": path}));
    let vm = plan.start(&probe("/old"));
    let view = vm.until("healthy", is("state", "Healthy")).await;
    assert_eq!((&view["generation"], &view["source"]), (&json!(1), &json!("file")));
    assert_eq!(
        view["probe"],
        json!({
            "initialDelaySeconds": 0, "timeoutSeconds": 15, "periodSeconds": 1, "successThreshold": 1, "failureThreshold": 1,
            "httpGet": {"path": "/old", "port": app.port(), "scheme": "HTTP"},
        })
    );

    write(&vm.file, &probe("/new"));
    vm.until("the new path", |view| view["probe"]["httpGet"]["path"] == "/new").await;
    let asked = app.seen().len();
    let seen = app.seen_at_least(asked + 2).await;
    assert!(seen.last().is_some_and(|seen| seen.request_line().starts_with("GET /new ")), "{seen:?}");

    write(&vm.file, &quick("httpGet", json!({"port": 0})));
    let error = "spec.probe.httpGet.port: must be between 1 and 65535, got 0";
    let view = vm.until("the error", is("configError", error)).await;
    assert_eq!(view["probe"]["httpGet"]["path"], "/new", "the old probe must stay in use");
    std::fs::remove_file(&vm.file).expect("a file");
    vm.until("the next error", |view| {
        view["configError"].as_str().is_some_and(|text| text.contains("No such file"))
    })
    .await;
    let asked = app.seen().len();
    app.seen_at_least(asked + 2).await;
    let view = vm.view().await;
    assert_eq!(
        (&view["state"], &view["generation"]),
        (&json!("Healthy"), &json!(1)),
        "the state must not change"
    );
    assert_eq!(
        vm.sidecar.log().matches("the workload group is not taken").count(),
        2,
        "{}",
        vm.sidecar.log()
    );

    write(&vm.file, &Value::Null);
    let view = vm.until("no probe", is("reason", "NoProbe")).await;
    assert_eq!((&view["state"], &view["generation"]), (&json!("Unknown"), &json!(2)));
}

#[tokio::test]
async fn a_bad_file_ends_the_agent() {
    let file = envoy::folder("vm-bad-file").join("group.yaml");
    write(&file, &json!({"periodSeconds": -1, "httpGet": null}));
    let file = file.to_str().expect("a path");
    let outcome = agent::run(&["run", "--no-envoy", "--workload-group", file], &[]).await;
    assert_eq!(outcome.code, Some(64), "{outcome:?}");
    let line = format!(
        "app-health-agent: --workload-group = {file}: spec.probe.periodSeconds: must be 0 or more, got -1; \
         spec.probe.httpGet: must not be empty\n"
    );
    assert_eq!(outcome.stderr, line);
}

#[tokio::test]
async fn envoy_comes_first() {
    let builder = Builder::bare("vm-envoy-first");
    let app = App::start(builder.ip, answer(OK)).await;
    let file = builder.folder.join("group.yaml");
    write(&file, &quick("tcpSocket", json!({"port": app.port()})));
    let nobody = SocketAddr::new(net::loopback(), 15000);
    let flags = ["--workload-group", file.to_str().expect("a path")];
    let sidecar = builder.watching(nobody).args(&flags).start_plain();
    let vm = Vm { sidecar, file };
    let view = vm.until("a verdict", is("state", "Unhealthy")).await;
    assert_eq!(view["reason"], "EnvoyNotReady");
    assert!(view["message"].as_str().is_some_and(|text| text.starts_with("Envoy is not ready: ")), "{view}");
    assert_eq!(app.seen().len(), 0, "the application must not be probed");
}

#[tokio::test]
async fn a_stopped_agent_makes_up_for_nothing() {
    let plan = Plan::new("vm-stopped");
    let app = App::start(plan.ip, answer(OK)).await;
    let vm = plan.start(&quick("httpGet", json!({"port": app.port()})));
    app.seen_at_least(2).await;
    vm.sidecar.signal(Signal::SIGSTOP);
    let before = app.seen().len();
    sleep(Duration::from_secs(6)).await;
    assert!(app.seen().len() <= before + 1, "a stopped agent must not probe");
    vm.sidecar.signal(Signal::SIGCONT);
    app.seen_at_least(before + 1).await;
    sleep(Duration::from_millis(600)).await;
    assert!(app.seen().len() <= before + 3, "{} probes at once", app.seen().len() - before);
    assert_eq!(vm.view().await["generation"], 1);
}

#[tokio::test]
async fn a_drain_and_the_end() {
    let plan = Plan::new("vm-drain");
    let app = App::start(plan.ip, answer(OK)).await;
    let vm = plan.start(&quick("tcpSocket", json!({"port": app.port()})));
    vm.until("healthy", is("state", "Healthy")).await;
    let answer = vm.sidecar.local("POST /drain", "Host: localhost\r\n").await;
    assert_eq!(answer.status, 200);
    let view = vm.until("draining", is("reason", "Draining")).await;
    assert_eq!((&view["state"], &view["generation"]), (&json!("Unhealthy"), &json!(2)));
    vm.sidecar.signal(Signal::SIGTERM);
    let (code, log) = vm.sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("reason=Terminating"), "{log}");
}

#[tokio::test]
async fn the_initial_delay_holds_nothing_up() {
    let plan = Plan::new("vm-delay");
    let mut probe = quick("tcpSocket", json!({"port": 1}));
    probe["initialDelaySeconds"] = 3600.into();
    let vm = plan.start(&probe);
    vm.until("there", is("reason", "AwaitingVerdict")).await;
    vm.sidecar.signal(Signal::SIGTERM);
    assert_eq!(vm.sidecar.end().await.0, Some(0));
}

/// Returns `/proc/<pid>/stat` of every descendant of the process `root`, including zombies.
fn descendants(root: i32) -> Vec<String> {
    let stat = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent = |pid: i32| -> Option<i32> { stat(pid).rsplit(") ").next()?.split(' ').nth(1)?.parse().ok() };
    let pids = std::fs::read_dir(Path::new("/proc"))
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_below = |pid: &i32| std::iter::successors(parent(*pid), |pid| parent(*pid)).any(|pid| pid == root);
    pids.filter(is_below).map(stat).collect()
}

#[tokio::test]
async fn commands_leave_nothing() {
    let mut probe = quick("exec", json!({"command": ["sh", "-c", "sleep 99 & sleep 99"]}));
    probe["timeoutSeconds"] = 1.into();
    let vm = Plan::new("vm-exec-group").start(&probe);
    assert_eq!(vm.verdict().await, "ExecTimeout: did not exit within 1 s");
    let root = vm.sidecar.pid().as_raw();
    let mut left = Vec::new();
    for _ in 0..200 {
        // The next probe may start at any time, so this only waits for a moment without a command.
        left = descendants(root);
        if left.is_empty() {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    // The period is as long as the timeout, so the next command may already run, but only one.
    assert!(left.len() <= 3, "{left:?}");
    write(&vm.file, &quick("exec", json!({"command": ["true"]})));
    vm.until("the next one", is("state", "Healthy")).await;
    for _ in 0..500 {
        left = descendants(root);
        if left.is_empty() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{left:?}");
}

#[tokio::test]
async fn no_command_loses_its_end() {
    let vm = Plan::new("vm-exec-end")
        .start(&quick("exec", json!({"command": ["sh", "-c", "(sleep 0.01 &) ; exit 0"]})));
    let view = vm.until("five probes", |view| view["counters"]["successes"].as_u64() >= Some(5)).await;
    assert_eq!(view["counters"]["failures"], 0, "{view}");
    assert_eq!(view["generation"], 1);
}

/// Returns the peak resident memory of a process, in KiB.
fn peak(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process exists");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn output_costs_no_memory() {
    let command = |script: &str| {
        let mut probe = quick("exec", json!({"command": ["sh", "-c", script]}));
        probe["timeoutSeconds"] = 20.into();
        probe
    };
    let vm = Plan::new("vm-exec-output").start(&command("true"));
    vm.until("healthy", is("state", "Healthy")).await;
    let before = peak(vm.sidecar.pid().as_raw());
    write(&vm.file, &command("head -c 1073741824 /dev/zero && exit 7"));
    let view = vm.until("a verdict", is("state", "Unhealthy")).await;
    assert_eq!(view["message"], "exit code 7");
    let after = peak(vm.sidecar.pid().as_raw());
    assert!(after < before + 4096, "{before} KiB, then {after} KiB");
}

#[tokio::test]
async fn what_it_counts() {
    let vm = Plan::new("vm-metrics").start(&quick("tcpSocket", json!({"port": 1})));
    assert!(vm.verdict().await.starts_with("ConnectionRefused"));
    let answer = vm.sidecar.local("GET /metrics", "Host: localhost\r\n").await;
    for line in [
        "app_health_agent_vm_probe_total{kind=\"tcp\",outcome=\"unhealthy\",reason=\"ConnectionRefused\"} ",
        "app_health_agent_vm_health_state{state=\"Unhealthy\"} 1",
        "app_health_agent_vm_health_transitions_total{to=\"Unhealthy\"} 1",
    ] {
        assert!(answer.text().contains(line), "{line}\n{}", answer.text());
    }
    assert_eq!(vm.sidecar.log().matches("probe failed").count(), 1, "{}", vm.sidecar.log());
}
