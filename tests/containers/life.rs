//! Tests of the sidecar as one container, from start to exit. Each case starts its own containers.

use std::os::unix::fs::PermissionsExt as _;

use kit::docker::{BUSYBOX, Container, Daemon, HELD, SIDECAR};
use kit::envoy;
use serde_json::json;

/// Restrictions as in production: only the rights that the sidecar needs.
const FIELD: [&str; 9] = [
    "--read-only",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--memory",
    "128m",
    "--pids-limit",
    "64",
];
const STATE: [&str; 2] = ["--tmpfs", "/var/run/app-health:uid=1337,gid=1337,mode=0700"];
const APP: &str = "mkdir -p /tmp/www && echo yes > /tmp/www/ready && exec httpd -f -p 8080 -h /tmp/www";
const READY: &str = "/app-health/app/readyz";

/// Starts the sidecar with additional flags of `docker run`.
fn sidecar<'a>(daemon: &'a Daemon, flags: &[&str]) -> Container<'a> {
    let table = json!({
        "/app-health/app/livez": {"tcpSocket": {"port": 8080}},
        "/app-health/app/readyz": {"httpGet": {"path": "/ready", "port": 8080}},
    });
    let table = format!("ISTIO_KUBE_APP_PROBERS={table}");
    daemon.run(&[&FIELD[..], flags, &["--env", &table, SIDECAR]].concat())
}

/// Sends SIGKILL to Envoy inside the container, as the kernel's OOM killer does.
fn kill_envoy(sidecar: &Container<'_>) {
    let outcome = sidecar.run_among_processes("kill -KILL $(pidof envoy)");
    // The agent, which is the first process, exits too; the kernel then also kills the shell, if it is
    // still there.
    assert!([Some(0), Some(137)].contains(&outcome.code), "{outcome:?}");
}

pub(crate) async fn probes(daemon: &Daemon) {
    let sidecar = sidecar(daemon, &STATE);
    sidecar.until_ready().await;
    assert_eq!(sidecar.until(15020, READY, 502).await.word(), "refused");
    let app = daemon.run(&["--network", &sidecar.namespace(), BUSYBOX, "sh", "-c", APP]);
    assert_eq!(sidecar.until(15020, READY, 200).await.text(), "");
    sidecar.until(15020, "/app-health/app/livez", 200).await;
    assert_eq!(app.exec(&["rm", "/tmp/www/ready"]).code, Some(0));
    assert_eq!(sidecar.until(15020, READY, 404).await.text(), "");
    let merged = sidecar.until(15020, "/stats/prometheus", 200).await.text();
    for name in ["app_health_agent_ready 1", "app_health_probes_total", "envoy_server_live"] {
        assert!(merged.contains(name), "{name}");
    }

    // The user and the capabilities of the agent and of Envoy.
    let rights = "grep -hE '^(Uid|Cap[A-Z]|NoNewPrivs)' /proc/1/status /proc/$(pidof envoy)/status";
    let rights = sidecar.among_processes(rights);
    let expected = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["Uid:", ..] => line.split_whitespace().skip(1).all(|user| user == "1337"),
        ["NoNewPrivs:", flag] => flag == "1",
        [_, capabilities] => capabilities.chars().all(|digit| digit == '0'),
        _ => false,
    };
    assert_eq!((rights.lines().count(), rights.lines().all(expected)), (14, true), "{rights}");
}

pub(crate) async fn image(daemon: &Daemon) {
    let text = daemon.ask(&["image", "inspect", "--format", "{{json .Config}}", SIDECAR]);
    let config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(config["User"], "1337:1337");
    assert_eq!((&config["Entrypoint"], &config["Cmd"]), (&json!(["app-health-agent"]), &json!(["run"])));
    let version = daemon.ask(&["run", "--rm", "--network", "none", SIDECAR, "--version"]);
    assert!(version.starts_with("app-health-agent "), "{version}");
}

pub(crate) async fn drained(daemon: &Daemon) {
    // Long enough to be observed on a busy machine.
    let sidecar = sidecar(daemon, &[&STATE[..], &["--env", "APP_HEALTH_DRAIN_SECONDS=20"]].concat());
    sidecar.until_ready().await;
    sidecar.signal("TERM");
    assert_eq!(sidecar.until(15021, "/healthz/ready", 503).await.text().trim(), "draining");
    assert_eq!(sidecar.end().await, 0, "{}", sidecar.logs());
    sidecar.until_logged("with code 0").await;
}

/// Runs the commands for hooks and Jobs by `exec`, as kubelet does.
pub(crate) async fn told(daemon: &Daemon) {
    let sidecar = sidecar(daemon, &STATE);
    assert_eq!(sidecar.exec(&["app-health-agent", "wait"]).code, Some(0));
    assert_eq!(sidecar.exec(&["app-health-agent", "drain"]).code, Some(0));
    sidecar.until(15021, "/healthz/ready", 503).await;
    assert_eq!(sidecar.exec(&["app-health-agent", "wait", "--timeoutSeconds", "0"]).code, Some(69));
    assert_eq!(sidecar.exec(&["app-health-agent", "quit"]).code, Some(0));
    assert_eq!(sidecar.end().await, 0, "{}", sidecar.logs());
}

pub(crate) async fn killed(daemon: &Daemon) {
    let sidecar = sidecar(daemon, &STATE);
    sidecar.until_ready().await;
    kill_envoy(&sidecar);
    assert_eq!(sidecar.end().await, 70);
    sidecar.until_logged("app-health-agent: Envoy exited unexpectedly, terminated by SIGKILL").await;
}

pub(crate) async fn restarted(daemon: &Daemon) {
    let sidecar = sidecar(daemon, &[&STATE[..], &["--restart", "on-failure"]].concat());
    sidecar.until_ready().await;
    kill_envoy(&sidecar);
    kit::wait::until("the container is restarted", async || {
        sidecar.inspect("/RestartCount") == 1 && sidecar.inspect("/State/Running") == true
    })
    .await;
    sidecar.until_ready().await;
}

/// The agent is PID 1 of the container, so it has to reap orphaned processes.
pub(crate) async fn orphans(daemon: &Daemon) {
    let sidecar = sidecar(daemon, &STATE);
    sidecar.until_ready().await;
    let script = "for i in $(seq 200); do (sleep 300 &); done; grep -l '^PPid:[^0-9]*1$' /proc/[0-9]*/status | wc -l
        killall sleep
        until [ -z \"$(pidof sleep)\" ] && ! grep -q '^State:.Z' /proc/[0-9]*/status; do sleep 0.1; done 2>/dev/null; echo none";
    let namespace = sidecar.namespace();
    let words = ["run", "--rm", "--pid", &namespace, BUSYBOX, "timeout", "90", "sh", "-c", script];
    let counts = daemon.docker(&words).stdout;
    let orphans = counts.lines().next().and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    assert!(
        orphans > 100 && counts.ends_with("none\n"),
        "number of orphans, then `none` once all are reaped: {counts}"
    );
    sidecar.until_logged("ready seconds=").await;
    sidecar.signal("TERM");
    assert_eq!(sidecar.end().await, 0, "{}", sidecar.logs());
}

/// The sidecar starts with little memory, half a CPU and few processes.
pub(crate) async fn small(daemon: &Daemon) {
    let limits = ["--memory", "64m", "--cpus", "0.5", "--pids-limit", "32"];
    let little = sidecar(daemon, &[&STATE[..], &limits].concat());
    little.until_ready().await;
    let arguments = little.among_processes("tr '\\0' ' ' < /proc/$(pidof envoy)/cmdline");
    assert!(arguments.contains("--concurrency 1 "), "{arguments}");
}

/// The state directory works on each kind of volume and with each owner that is supported.
pub(crate) async fn state(daemon: &Daemon) {
    // An emptyDir of Kubernetes belongs to root and is writable by all users. OpenShift assigns an
    // arbitrary user ID.
    let volume = envoy::folder("containers-volume");
    std::fs::set_permissions(&volume, std::fs::Permissions::from_mode(0o777))
        .expect("this process owns the file");
    let mount = format!("{}:/var/run/app-health", volume.display());
    for user in ["1337:1337", "4711:0"] {
        let sidecar = sidecar(daemon, &["--user", user, "--volume", &mount]);
        sidecar.until_ready().await;
        sidecar.signal("KILL");
        sidecar.end().await;
        std::fs::remove_dir_all(volume.join("state")).expect("the agent created the state directory");
    }
    // A volume that Docker creates, and no volume.
    sidecar(daemon, &["--volume", "/var/run/app-health"]).until_ready().await;
    sidecar(daemon, &["--read-only=false"]).until_ready().await;
    let nowhere = sidecar(daemon, &[]);
    assert_eq!(nowhere.end().await, 73);
    nowhere.until_logged("/var/run/app-health/state").await;
}

pub(crate) async fn wrong(daemon: &Daemon) {
    let message = envoy::folder("containers-message").join("termination-log");
    std::fs::write(&message, "").expect("a writable folder");
    std::fs::set_permissions(&message, std::fs::Permissions::from_mode(0o666))
        .expect("this process owns the file");
    let mount = format!("{}:/dev/termination-log", message.display());
    let table = r#"ISTIO_KUBE_APP_PROBERS={"/app-health/app/livez": {"tcpSocket": {"port": 0}}}"#;
    let sidecar = daemon.run(&[&FIELD[..], &STATE, &["--volume", &mount, "--env", table, SIDECAR]].concat());
    assert_eq!(sidecar.end().await, 64);
    let told = std::fs::read_to_string(&message).expect("readable");
    assert!(told.contains("tcpSocket.port"), "{told:?}, {}", sidecar.logs());
}

/// An application that starts before its sidecar and waits for it.
pub(crate) async fn held(daemon: &Daemon) {
    let pod = daemon.run(&[BUSYBOX, "sleep", "2147483647"]);
    let network = ["--network", &pod.namespace()];
    let words = ["--user", "0", HELD, "wait", "--", "sh", "-c", APP];
    let app = daemon.run(&[&network[..], &words].concat());
    // By then `wait` has sent its first request.
    app.until_logged("connection refused").await;
    assert_eq!(app.inspect("/State/Running"), true, "{}", app.logs());
    assert_eq!(
        kit::caller::get(pod.address(8080), "/ready", &[]).await.status,
        0,
        "the application must not start before the sidecar"
    );
    sidecar(daemon, &[&STATE[..], &network].concat());
    assert_eq!(pod.until(8080, "/ready", 200).await.text(), "yes\n");
    app.until_logged("ready after").await;
    pod.until(15020, READY, 200).await;
}
