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
use kit::wait;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::prober_support::{AgentConfig, OK, ProbingAgent, TIMEOUT, accepted, single_failure_probe, write};

fn is(name: &'static str, value: &'static str) -> impl Fn(&Value) -> bool {
    move |view| view[name] == value
}

#[tokio::test]
async fn an_edited_file_is_applied_without_a_flap() {
    let plan = AgentConfig::new("vm-file-edit");
    let app = App::start(plan.ip, answer(OK)).await;
    let probe = |path: &str| single_failure_probe("httpGet", json!({"port": app.port(), "path": path}));
    let vm = plan.start(&probe("/old"));
    let view = vm.until("healthy", is("state", "Healthy")).await;
    assert_eq!((&view["generation"], &view["source"]), (&json!(1), &json!("file")));
    assert_eq!(
        view["probe"],
        json!({
            "initialDelaySeconds": 0, "timeoutSeconds": TIMEOUT, "periodSeconds": 1, "successThreshold": 1, "failureThreshold": 1,
            "httpGet": {"path": "/old", "port": app.port(), "scheme": "HTTP"},
        })
    );

    write(&vm.file, &probe("/new"));
    vm.until("the new path", |view| view["probe"]["httpGet"]["path"] == "/new").await;
    wait::until("a request for the new path", async || {
        app.seen().iter().any(|seen| seen.request_line().starts_with("GET /new "))
    })
    .await;

    write(&vm.file, &single_failure_probe("httpGet", json!({"port": 0})));
    let error = "spec.probe.httpGet.port: must be between 1 and 65535, got 0";
    let view = vm.until("the error", is("configError", error)).await;
    assert_eq!(view["probe"]["httpGet"]["path"], "/new", "the old probe must stay in use");
    std::fs::remove_file(&vm.file).expect("a file");
    vm.until("the next error", |view| {
        view["configError"].as_str().is_some_and(|text| text.contains("No such file"))
    })
    .await;
    let seen_before = app.seen().len();
    app.seen_at_least(seen_before + 2).await;
    let view = vm.view().await;
    assert_eq!(
        (&view["state"], &view["generation"]),
        (&json!("Healthy"), &json!(1)),
        "the state must not change"
    );
    wait::until("both errors in the log", async || {
        vm.sidecar.log().matches("WorkloadGroup rejected, keeping the previous one").count() == 2
    })
    .await;

    write(&vm.file, &Value::Null);
    let view = vm.until("no probe", is("reason", "NoProbe")).await;
    assert_eq!((&view["state"], &view["generation"]), (&json!("Unknown"), &json!(2)));
}

#[tokio::test]
async fn an_invalid_file_prevents_the_start() {
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
async fn the_application_is_probed_after_envoy_is_ready() {
    let builder = Builder::bare("vm-envoy-first");
    let app = App::start(builder.ip, answer(OK)).await;
    let file = builder.folder.join("group.yaml");
    write(&file, &single_failure_probe("tcpSocket", json!({"port": app.port()})));
    let nobody = SocketAddr::new(net::loopback(), 15000);
    let flags = ["--workload-group", file.to_str().expect("a path")];
    let sidecar = builder.watching(nobody).args(&flags).start_plain();
    let vm = ProbingAgent { sidecar, file };
    let view = vm.until("a verdict", is("state", "Unhealthy")).await;
    assert_eq!(view["reason"], "EnvoyNotReady");
    assert!(view["message"].as_str().is_some_and(|text| text.starts_with("Envoy is not ready: ")), "{view}");
    assert_eq!(accepted(&app).await, [], "the application must not be probed");
}

/// An agent that is stopped for six periods does not repeat the missed probes.
#[tokio::test]
async fn missed_probes_are_not_repeated() {
    const PERIODS: u32 = 6;
    const PERIOD: Duration = Duration::from_secs(1);
    let plan = AgentConfig::new("vm-probe-stopped");
    let app = App::start(plan.ip, answer(OK)).await;
    let vm = plan.start(&single_failure_probe("httpGet", json!({"port": app.port()})));
    app.seen_at_least(2).await;
    vm.sidecar.signal(Signal::SIGSTOP);
    let before = accepted(&app).await.len();
    sleep(PERIOD * PERIODS).await;
    // The connection of `accepted` itself is counted too.
    let after = accepted(&app).await.len();
    assert_eq!(after, before + 1, "a stopped agent must not probe");
    let begin = Instant::now();
    vm.sidecar.signal(Signal::SIGCONT);
    // The first probe may follow at once; each other one begins at least one period after the
    // previous one.
    let probes = PERIODS as usize;
    wait::until("the next probes", async || app.seen().len() > after + probes).await;
    assert!(begin.elapsed() >= PERIOD * (PERIODS - 2), "{probes} probes in {:?}", begin.elapsed());
    assert_eq!(vm.view().await["generation"], 1);
}

#[tokio::test]
async fn draining_and_termination_are_unhealthy() {
    let plan = AgentConfig::new("vm-drain");
    let app = App::start(plan.ip, answer(OK)).await;
    let vm = plan.start(&single_failure_probe("tcpSocket", json!({"port": app.port()})));
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
async fn the_agent_terminates_during_the_initial_delay() {
    let plan = AgentConfig::new("vm-delay");
    let mut probe = single_failure_probe("tcpSocket", json!({"port": 1}));
    probe["initialDelaySeconds"] = 3600.into();
    let vm = plan.start(&probe);
    vm.until("there", is("reason", "AwaitingVerdict")).await;
    vm.sidecar.signal(Signal::SIGTERM);
    assert_eq!(vm.sidecar.end().await.0, Some(0));
}

/// Returns PID and start time of every descendant of the process `root`, including zombies.
fn descendants(root: i32) -> Vec<(i32, u64)> {
    // The fields after the name of the program, which may contain spaces.
    let field = |pid: i32, index: usize| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.split(' ').nth(index)?.parse::<u64>().ok()
    };
    let parent = |pid: i32| i32::try_from(field(pid, 1)?).ok();
    let pids = std::fs::read_dir(Path::new("/proc"))
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_below = |pid: &i32| std::iter::successors(parent(*pid), |pid| parent(*pid)).any(|pid| pid == root);
    pids.filter(is_below).filter_map(|pid| Some((pid, field(pid, 19)?))).collect()
}

#[tokio::test]
async fn all_processes_of_a_timed_out_command_are_killed() {
    let mut probe = single_failure_probe(
        "exec",
        json!({"command": ["sh", "-c", "sleep 99 & setsid sleep 99 & sleep 99"]}),
    );
    probe["timeoutSeconds"] = 1.into();
    let vm = AgentConfig::new("vm-exec-group").start(&probe);
    assert_eq!(vm.verdict().await, "ExecTimeout: did not exit within 1 s");
    let root = vm.sidecar.pid().as_raw();
    let started = wait::try_poll(async || Some(descendants(root)).filter(|pids| !pids.is_empty()));
    let started = started.await.expect("the command runs again");
    wait::until("the end of the command and of its children", async || {
        let left = descendants(root);
        !started.iter().any(|process| left.contains(process))
    })
    .await;
    write(&vm.file, &single_failure_probe("exec", json!({"command": ["true"]})));
    vm.until("the next one", is("state", "Healthy")).await;
    wait::until("a moment without a command", async || descendants(root).is_empty()).await;
}

#[tokio::test]
async fn orphans_do_not_hide_the_exit_code_of_a_command() {
    let vm = AgentConfig::new("vm-exec-end")
        .start(&single_failure_probe("exec", json!({"command": ["sh", "-c", "(sleep 0.01 &) ; exit 0"]})));
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
async fn the_output_of_a_command_is_not_kept() {
    let command = |script: &str| single_failure_probe("exec", json!({"command": ["sh", "-c", script]}));
    let vm = AgentConfig::new("vm-exec-output").start(&command("true"));
    vm.until("healthy", is("state", "Healthy")).await;
    let before = peak(vm.sidecar.pid().as_raw());
    write(&vm.file, &command("head -c 67108864 /dev/zero && exit 7"));
    let view = vm.until("a verdict", is("state", "Unhealthy")).await;
    assert_eq!(view["message"], "exit code 7");
    let after = peak(vm.sidecar.pid().as_raw());
    assert!(after < before + 4096, "{before} KiB, then {after} KiB");
}

#[tokio::test]
async fn metrics_count_probes() {
    let vm = AgentConfig::new("vm-metrics").start(&single_failure_probe("tcpSocket", json!({"port": 1})));
    assert!(vm.verdict().await.starts_with("ConnectionRefused"));
    let answer = vm.sidecar.local("GET /metrics", "Host: localhost\r\n").await;
    for line in [
        "app_health_agent_vm_probe_total{kind=\"tcp\",outcome=\"unhealthy\",reason=\"ConnectionRefused\"} ",
        "app_health_agent_vm_health_state{state=\"Unhealthy\"} 1",
        "app_health_agent_vm_health_transitions_total{to=\"Unhealthy\"} 1",
    ] {
        assert!(answer.text().contains(line), "{line}\n{}", answer.text());
    }
    vm.until("three probes", |view| view["counters"]["failures"].as_u64() >= Some(3)).await;
    wait::until("the first failure in the log", async || vm.sidecar.log().contains("probe failed")).await;
    assert_eq!(vm.sidecar.log().matches("probe failed").count(), 1, "{}", vm.sidecar.log());
}
