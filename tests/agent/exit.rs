//! Tests of how `run` exits when something fails: its exit code, its log, and the processes and
//! files that it leaves.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kit::agent;
use kit::caller;
use kit::envoy::Version;
use kit::net;
use kit::not_tested;
use kit::process::{children, is_alive};
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

/// Number of times that a script looks for orphans, every tenth of a second, before it gives up.
const ROUNDS: u32 = 900;

/// Writes an executable shell script `envoy` into the folder.
pub(crate) fn script(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("envoy");
    std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("a writable folder");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))
        .expect("this process owns the file");
    file
}

/// Waits until a script has written a line to the file, and returns it.
async fn written(file: &Path) -> String {
    let what = || format!("{} is written", file.display());
    wait::until_some(what, async || {
        let text = std::fs::read_to_string(file).ok().filter(|text| text.ends_with('\n'))?;
        Some(text.trim().to_owned())
    })
    .await
}

async fn until_gone(pid: Pid) {
    wait::until(&format!("process {pid} exits"), async || !is_alive(pid)).await;
}

#[tokio::test]
async fn the_agent_exits_with_envoy() {
    let sidecar = Builder::new("exit-killed").start();
    sidecar.until(200, "ready").await;
    let envoy = sidecar.envoy_pid();
    kill(envoy, Signal::SIGKILL).expect("Envoy runs");
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(70), "{log}");
    assert!(log.contains("app-health-agent: Envoy exited unexpectedly, terminated by SIGKILL"), "{log}");
}

#[tokio::test]
async fn envoy_is_killed_with_the_agent() {
    let sidecar = Builder::new("exit-agent").start();
    sidecar.until(200, "ready").await;
    let envoy = sidecar.envoy_pid();
    sidecar.signal(Signal::SIGKILL);
    sidecar.end().await;
    until_gone(envoy).await;
}

#[tokio::test]
async fn an_envoy_started_by_a_script_is_killed_with_it() {
    let builder = Builder::bare("exit-script");
    let (envoy, pid) = (Version::Newest.binary(), builder.folder.join("pid"));
    let text = format!(
        "[ \"$1\" = --version ] && exec {envoy} --version\n{envoy} \"$@\" &\necho $! > {pid}\nwait",
        envoy = envoy.display(),
        pid = pid.display()
    );
    let script = script(&builder.folder, &text);
    let sidecar = builder.args(&["--envoy", script.to_str().expect("a path")]).start();
    sidecar.until(200, "ready").await;
    let envoy = Pid::from_raw(written(&pid).await.parse().expect("a number"));
    assert!(is_alive(envoy) && envoy != sidecar.envoy_pid());
    kill(sidecar.envoy_pid(), Signal::SIGKILL).expect("the script runs");
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(70), "{log}");
    until_gone(envoy).await;
}

#[tokio::test]
async fn signals_are_handled_during_the_version_query() {
    let builder = Builder::bare("exit-version");
    let pid = builder.folder.join("pid");
    let script = script(&builder.folder, &format!("echo $$ > {}\nexec sleep 1000", pid.display()));
    let sidecar = builder.args(&["--envoy", script.to_str().expect("a path")]).start();
    let asked = Pid::from_raw(written(&pid).await.parse().expect("a number"));
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(143), "{log}");
    assert!(log.contains("terminated before Envoy was started"), "{log}");
    until_gone(asked).await;
}

#[tokio::test]
async fn signals_are_handled_during_validation() {
    let builder = Builder::bare("exit-judged");
    let pid = builder.folder.join("pid");
    let text = format!(
        "[ \"$1\" = --version ] && echo 'envoy  version: x/1.40.0/Clean' && exit 0\n\
         case \"$*\" in *validate*) echo $$ > {}; exec sleep 1000;; esac\nexit 1",
        pid.display()
    );
    let script = script(&builder.folder, &text);
    let sidecar = builder.args(&["--envoy", script.to_str().expect("a path")]).start();
    let judging = Pid::from_raw(written(&pid).await.parse().expect("a number"));
    assert_eq!(sidecar.local("POST /quitquitquit", "").await.status, 200);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    until_gone(judging).await;
}

/// Without a free descriptor the agent cannot start Envoy. With `--envoy-restart always` the agent
/// itself tries again.
#[tokio::test]
async fn a_failed_restart_is_repeated() {
    let builder = Builder::new("exit-again");
    let sidecar = builder.args(&["--envoy-restart", "always"]).start();
    sidecar.until(200, "ready").await;
    let limit = async |limit: &str| {
        let mut command = tokio::process::Command::new("prlimit");
        command.args(["--pid", &sidecar.pid().to_string(), &format!("--nofile={limit}:")]);
        assert!(command.status().await.expect("prlimit of util-linux").success());
    };
    limit("3").await;
    kill(sidecar.envoy_pid(), Signal::SIGKILL).expect("Envoy runs");
    wait::until("the agent cannot start Envoy", async || sidecar.log().contains("cannot start Envoy")).await;
    limit("1024").await;
    sidecar.until(200, "ready").await;
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}

/// Kills Envoy, and returns once another one is ready.
async fn replaced(sidecar: &Sidecar) {
    let old = sidecar.envoy_pid();
    kill(old, Signal::SIGKILL).expect("Envoy runs");
    let what = || format!("Envoy is started again\n{}", sidecar.log());
    wait::until_or(what, async || matches!(children(sidecar.pid())[..], [new] if new != old)).await;
    sidecar.until(200, "ready").await;
}

#[tokio::test]
async fn too_many_exits_of_envoy_within_the_window_end_the_agent() {
    let flags = ["--envoy-restart", "limited", "--envoy-restart-limit", "2"];
    let sidecar = Builder::new("exit-limited").args(&flags).start();
    sidecar.until(200, "ready").await;
    for _ in 0..2 {
        replaced(&sidecar).await;
    }
    kill(sidecar.envoy_pid(), Signal::SIGKILL).expect("Envoy runs");
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(70), "{log}");
    let last = "app-health-agent: Envoy exited unexpectedly, terminated by SIGKILL, after 2 restarts;";
    assert!(log.contains(last), "{log}");
}

/// Envoy prints the whole configuration when it rejects one; the agent must not log header values.
#[tokio::test]
async fn errors_contain_no_header_values() {
    let builder = Builder::new("exit-secret");
    let user = builder.folder.join("user.json");
    let cluster = json!({"name": "", "type": "STATIC"});
    std::fs::write(&user, json!({"static_resources": {"clusters": [cluster]}}).to_string())
        .expect("a writable folder");
    let headers = json!([{"name": "Authorization", "value": "Bearer do-not-tell"}]);
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": 8080, "httpHeaders": headers}}});
    let builder = builder.env("ISTIO_KUBE_APP_PROBERS", &table.to_string());
    let sidecar = builder.args(&["--user-config", user.to_str().expect("a path")]).start();
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(64), "{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(
        last.contains("Envoy rejected its configuration") && last.contains("ClusterValidation"),
        "{last}"
    );
    assert!(!log.contains("do-not-tell"), "{log}");
}

/// Each change of the log level is logged, so 3,000 of them fill the stderr pipe and every buffer
/// before it.
#[tokio::test]
async fn a_blocked_stderr_does_not_block_the_agent() {
    let ip = net::loopback();
    let (ready, local) = (SocketAddr::new(ip, 15021), SocketAddr::new(ip, 15004));
    let admin = SocketAddr::new(ip, 15000).to_string();
    let mut command = agent::command(&["run", "--no-envoy", "--data-path", "off", "--admin", &admin]);
    command.args(["--ready-address", &ready.to_string(), "--local-address", &local.to_string()]);
    let mut running = command.spawn().expect("the agent starts");
    wait::until("the agent answers", async || caller::get(ready, "/healthz/ready", &[]).await.status == 503)
        .await;
    for _ in 0..3000 {
        let answer = caller::send(local, b"PUT /debug/log?level=info HTTP/1.1\r\n\r\n").await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!(caller::get(ready, "/healthz/ready", &[]).await.status, 503);
    let pid = running.id().and_then(|pid| i32::try_from(pid).ok()).expect("a pid");
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("the agent runs");
    let ended = tokio::time::timeout(wait::timeout(), running.wait()).await.expect("the agent exits");
    assert_eq!(ended.expect("a child").code(), Some(143));
}

#[tokio::test]
async fn a_rejected_configuration_is_reported_with_envoys_message() {
    let builder = Builder::new("exit-refused");
    let config = builder.folder.join("mine.json");
    std::fs::write(&config, r#"{"static_resources": {"listenerz": []}}"#).expect("a writable folder");
    let sidecar = builder.args(&["--envoy-config", config.to_str().expect("a path")]).start();
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(64), "{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("Envoy rejected its configuration") && last.contains("listenerz"), "{last}");
}

#[tokio::test]
async fn errors_before_envoy_starts() {
    let builder = Builder::new("exit-taken");
    let taken = std::net::TcpListener::bind((builder.ip, 15004)).expect("a free port");
    let state = builder.folder.join("state");
    let (code, log) = builder.start().end().await;
    assert_eq!(code, Some(71), "{log}");
    assert!(log.contains("port 15004") && !log.contains("envoy started") && !state.exists(), "{log}");
    drop(taken);

    let builder = Builder::new("exit-state");
    std::fs::write(builder.folder.join("state"), "a file").expect("a writable folder");
    let (code, log) = builder.start().end().await;
    assert_eq!(code, Some(73), "{log}");
    assert!(!log.contains("envoy started"), "{log}");

    let builder = Builder::bare("exit-none").env("PATH", "/nonexistent");
    let state = builder.folder.join("state");
    let (code, log) = builder.start().end().await;
    assert_eq!(code, Some(64), "{log}");
    assert!(log.contains("/nonexistent") && log.contains("--no-envoy") && !state.exists(), "{log}");
}

/// As PID 1 the agent has to reap every orphan. A script in place of Envoy creates a thousand
/// orphans, waits until none of them is left, running or as a zombie, and exits with code 7, which
/// the agent must still report.
#[tokio::test]
async fn as_pid_1_the_agent_reaps_orphans_and_reports_envoys_exit() {
    if !not_tested::has_root_and("the agent as PID 1", &["unshare"]) {
        return;
    }
    let builder = Builder::bare("exit-pid1");
    let rounds = builder.folder.join("rounds");
    let text = format!(
        r#"case "$*" in *validate*) exit 7;; esac
for i in $(seq 1000); do (sleep 0.01 &) ; done
round=0
until [ "$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c -e ') Z ' -e '(sleep)')" = 0 ] || [ $round = {ROUNDS} ]; do
    sleep 0.1
    round=$((round + 1))
done
echo $round > {}
exit 7"#,
        rounds.display()
    );
    let script = script(&builder.folder, &text);
    let mut command = tokio::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(agent::binary()).arg("run");
    for (flag, port) in [("--ready-address", 15021), ("--local-address", 15004)] {
        command.arg(flag).arg(format!("{}:{port}", builder.ip));
    }
    command.arg("--envoy").arg(&script).args(["--envoy-version", "1.40"]);
    command.args(["--envoy-config", "/dev/null", "--data-path", "off"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let outcome = agent::finish(command.spawn().expect("unshare starts")).await;
    // The script exits with 7 also when the agent validates the configuration, so the agent reports
    // a rejected configuration, code 64.
    assert!(outcome.stderr.contains("with code 7"), "{outcome:?}");
    assert_eq!(outcome.code, Some(64), "{outcome:?}");
    let rounds = std::fs::read_to_string(rounds).expect("the script counted");
    assert_ne!(rounds.trim(), ROUNDS.to_string(), "orphans or zombies are left");
}
