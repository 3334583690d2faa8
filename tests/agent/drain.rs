//! Tests of how a sidecar with a real Envoy terminates: by signals, and by the commands `drain` and
//! `quit`.

use std::path::{Path, PathBuf};

use kit::admin::{Mood, ScriptedAdmin};
use kit::agent;
use kit::caller;
use kit::envoy::{self, Version};
use kit::process::{children, is_alive};
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::exit::script;
use crate::run::user_config;

/// The port of the listener in the user's configuration.
const THEIRS: u16 = 18080;

/// Flags with a minimum that outlasts every wait, so that a test that does not skip it fails.
const ENDLESS: [&str; 4] = ["--drain-seconds", "600", "--drain-deadline-seconds", "1200"];

/// Starts a sidecar whose user configuration has a listener, and waits until it is ready.
async fn ready(name: &str, flags: &[&str]) -> Sidecar {
    ready_with(name, flags, |_| ()).await
}

/// Like [`ready`], with changes to the list of listeners.
async fn ready_with(name: &str, flags: &[&str], change: impl FnOnce(&mut Vec<Value>)) -> Sidecar {
    let builder = Builder::new(name);
    let user = builder.folder.join("user.json");
    let mut config = user_config(builder.ip, THEIRS);
    change(config["static_resources"]["listeners"].as_array_mut().expect("a list"));
    std::fs::write(&user, config.to_string()).expect("a writable folder");
    let sidecar = builder.args(&["--user-config", user.to_str().expect("a path")]).args(flags).start();
    sidecar.until(200, "ready").await;
    sidecar
}

/// Opens a connection to the user's listener, sends one request, and leaves the connection open.
async fn connection(sidecar: &Sidecar) -> TcpStream {
    let mut stream = TcpStream::connect((sidecar.ip, THEIRS)).await.expect("the port is open");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("a connection");
    let mut answer = [0; 1024];
    let length = stream.read(&mut answer).await.expect("an answer");
    assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
    stream
}

#[tokio::test]
async fn a_drain_lasts_until_connections_are_gone() {
    let sidecar = ready("drain", &["--drain-seconds", "1"]).await;
    let open = connection(&sidecar).await;
    let envoy = sidecar.envoy_pid();
    sidecar.signal(Signal::SIGTERM);
    sidecar.until(503, "draining").await;
    // The agent counts the connections once `--drain-seconds` is over.
    wait::until_or(
        || format!("connections are counted\n{}", sidecar.log()),
        async || sidecar.log().contains("connections=Some(1)"),
    )
    .await;
    assert_eq!(sidecar.ready("").await.text(), "draining\n");
    assert!(is_alive(envoy));
    let probe = caller::probe(envoy::probe_listener(sidecar.ip), "/app-health/~/readyz").await;
    assert_eq!(probe.status, 404, "a draining Pod still answers probes");
    drop(open);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!is_alive(envoy));
    let steps = [
        "drain started",
        "connections=Some(1)",
        "connections=Some(0)",
        "reason=\"terminating\"",
        "envoy exited",
    ];
    let places: Vec<_> =
        steps.iter().map(|step| log.find(step).unwrap_or_else(|| panic!("{step}: {log}"))).collect();
    assert!(places.is_sorted(), "{log}");
}

/// Sends a request on an open connection, and returns whether the response ends the connection.
async fn is_told_to_close(stream: &mut TcpStream) -> bool {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("a connection");
    let mut answer = Vec::new();
    while !answer.ends_with(b"theirs") {
        assert_ne!(stream.read_buf(&mut answer).await.expect("an answer"), 0, "cut");
    }
    String::from_utf8_lossy(&answer).to_lowercase().contains("connection: close")
}

/// The listener's direction is that of Envoy's default. The client of the connection is asked to close
/// it, and the agent exits as soon as it does, long before the deadline.
#[tokio::test]
async fn a_listener_without_direction_is_drained() {
    for direction in [None, Some("INBOUND")] {
        let name = format!("drain-{}", direction.unwrap_or("none").to_lowercase());
        let flags = ["--drain-seconds", "0", "--drain-deadline-seconds", "1200"];
        let sidecar = ready_with(&name, &flags, |listeners| {
            listeners[0]["traffic_direction"] = direction.map_or(Value::Null, Value::from);
        })
        .await;
        let mut open = connection(&sidecar).await;
        assert!(!is_told_to_close(&mut open).await, "there is no drain yet");
        sidecar.signal(Signal::SIGTERM);
        wait::until_or(|| sidecar.log(), async || sidecar.log().contains("connections=Some(1)")).await;
        assert!(is_told_to_close(&mut open).await, "{direction:?}: {}", sidecar.log());
        let (code, log) = sidecar.end().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("connections=Some(0)"), "{log}");
    }
}

/// An open connection to an outbound listener, which is not drained, does not delay the exit.
#[tokio::test]
async fn a_drain_waits_only_for_what_it_drains() {
    const OUTBOUND: u16 = 18081;
    let flags = ["--drain-seconds", "0", "--drain-deadline-seconds", "1200"];
    for (name, scope) in [("drain-outbound", "inbound"), ("drain-outbound-all", "all")] {
        let sidecar = ready_with(name, &[&flags[..], &["--drain-scope", scope]].concat(), |listeners| {
            let mut outbound = listeners[0].clone();
            outbound["name"] = "others".into();
            outbound["traffic_direction"] = "OUTBOUND".into();
            outbound["address"]["socket_address"]["port_value"] = OUTBOUND.into();
            listeners.push(outbound);
        })
        .await;
        let mut stream = TcpStream::connect((sidecar.ip, OUTBOUND)).await.expect("the port is open");
        assert!(!is_told_to_close(&mut stream).await);
        sidecar.signal(Signal::SIGTERM);
        if scope == "all" {
            wait::until_or(|| sidecar.log(), async || sidecar.log().contains("connections=Some(1)")).await;
            assert!(is_told_to_close(&mut stream).await);
        }
        let (code, log) = sidecar.end().await;
        assert_eq!(code, Some(0), "{log}");
    }
}

/// Envoy does not close TCP connections in a drain.
#[tokio::test]
async fn a_listener_that_no_drain_reaches_is_named_at_the_start() {
    let sidecar = ready_with("drain-tcp", &[], |listeners| {
        listeners[0]["name"] = "database".into();
        listeners[0]["filter_chains"] = json!([{"filters": [{
            "name": "envoy.filters.network.tcp_proxy",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
                "stat_prefix": "database", "cluster": "app_health_tcp"
            }
        }]}]);
    })
    .await;
    wait::until_or(|| sidecar.log(), async || sidecar.log().contains("because they are not HTTP: database;"))
        .await;
}

#[tokio::test]
async fn unknown_listeners_are_logged_at_the_start_and_at_the_drain() {
    for (scope, count) in [("inbound", 1), ("all", 0)] {
        let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
        let flags = ["--drain-scope", scope, "--drain-seconds", "0"];
        let name = format!("drain-unknown-{scope}");
        let sidecar = Builder::bare(&name).watching(admin.address).args(&flags).start_plain();
        sidecar.until(200, "ready").await;
        let at_start = "if it does not return them at the drain either";
        if count > 0 {
            wait::until_or(|| sidecar.log(), async || sidecar.log().contains(at_start)).await;
        }
        sidecar.signal(Signal::SIGTERM);
        let (code, log) = sidecar.end().await;
        assert_eq!(code, Some(0), "{log}");
        let at_drain = "unknown: --drain-scope inbound drains outbound listeners too";
        assert_eq!((log.matches(at_start).count(), log.matches(at_drain).count()), (count, count), "{log}");
    }
}

#[tokio::test]
async fn the_deadline_ends_a_drain_with_open_connections() {
    let sidecar = ready("drain-deadline", &["--drain-seconds", "0", "--drain-deadline-seconds", "3"]).await;
    let _open = connection(&sidecar).await;
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn a_second_signal_ends_the_drain_at_once() {
    let sidecar = ready("drain-twice", &ENDLESS).await;
    let envoy = sidecar.envoy_pid();
    sidecar.signal(Signal::SIGTERM);
    sidecar.until(503, "draining").await;
    sidecar.signal(Signal::SIGINT);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("envoy killed with SIGKILL") && !is_alive(envoy), "{log}");
}

#[tokio::test]
async fn sigterm_after_a_drain_request_skips_the_minimum() {
    let sidecar = ready("drain-before", &ENDLESS).await;
    let url = format!("http://{}", sidecar.local_address());
    let drained = agent::run(&["drain", "--url", &url, "--waitSeconds", "60"], &[]).await;
    assert_eq!(drained.code, Some(0), "{drained:?}");
    assert_eq!(sidecar.ready("").await.text(), "draining\n");
    assert_eq!(
        agent::run(&["drain", "--url", &url], &[]).await.code,
        Some(0),
        "a second drain must have no effect"
    );
    assert!(is_alive(sidecar.envoy_pid()), "Envoy still runs");
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn readiness_can_stay_during_a_drain() {
    let sidecar = ready("drain-keeps", &["--drain-keeps-ready"]).await;
    assert_eq!(sidecar.local("POST /drain", "").await.status, 200);
    assert_eq!(sidecar.ready("").await.status, 200);
    assert!(sidecar.ready("?verbose").await.text().contains("\"phase\":\"draining\""));
}

#[tokio::test]
async fn an_envoy_that_is_not_ready_is_not_drained() {
    let sidecar = Builder::new("drain-early").args(&["--dynamic", "on"]).args(&ENDLESS).start();
    sidecar.until(503, "clusters not received\nlisteners not received").await;
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(143), "{log}");
    let last =
        "SIGTERM before Envoy was ready for the first time: clusters not received, listeners not received";
    assert!(log.trim_end().ends_with(last), "{log}");
}

/// kubelet restarts a container with `restartPolicy: OnFailure` only if its exit code is not 0. A
/// request to quit is one of the user, whose Job has finished.
#[tokio::test]
async fn an_agent_whose_envoy_was_never_ready_fails() {
    for (own, request, expected) in [
        (true, Some(Signal::SIGTERM), 143),
        (true, Some(Signal::SIGINT), 130),
        (true, None, 0),
        (false, Some(Signal::SIGTERM), 143),
        (false, None, 0),
    ] {
        let builder = Builder::bare("drain-never");
        let text =
            "[ \"$1\" = --version ] && echo 'envoy  version: x/1.40.0/Clean' && exit 0\nexec sleep 1000";
        let envoy = script(&builder.folder, text);
        let flags: &[&str] = if own {
            &["--envoy", envoy.to_str().expect("a path")]
        } else {
            &["--no-envoy", "--data-path", "off"]
        };
        let sidecar = builder.args(flags).start_plain();
        let reason =
            if own { "envoy admin not answering\nprobe listener not answering" } else { "envoy not started" };
        sidecar.until(503, reason).await;
        match request {
            Some(signal) => sidecar.signal(signal),
            None => assert_eq!(sidecar.local("POST /quitquitquit", "").await.status, 200),
        }
        let (code, log) = sidecar.end().await;
        assert_eq!(code, Some(expected), "{own} {request:?}: {log}");
    }
}

/// Starts a real Envoy until the file `hangs` exists, and then a process that is never ready.
fn envoy_until_hangs(folder: &Path) -> PathBuf {
    let (hangs, binary) = (folder.join("hangs"), Version::Newest.binary());
    let text = format!(
        "[ -e {} ] && [ \"$1\" != --version ] && exec sleep 1000\nexec {} \"$@\"",
        hangs.display(),
        binary.display()
    );
    script(folder, &text)
}

/// An agent that is stopped while no ready Envoy runs fails only if none was ever ready.
#[tokio::test]
async fn an_agent_whose_envoy_was_ready_before_succeeds() {
    for way in ["killed", "undrained", "external"] {
        let builder = Builder::bare(&format!("drain-was-ready-{way}"));
        let (folder, ip) = (builder.folder.clone(), builder.ip);
        let envoy = envoy_until_hangs(&folder);
        let flags = ["--envoy", envoy.to_str().expect("a path"), "--envoy-restart", "always"];
        let theirs = builder.args(&flags).args(&ENDLESS).start();
        theirs.until(200, "ready").await;
        std::fs::write(folder.join("hangs"), "").expect("a writable folder");
        let (agent, gone) = match way {
            "killed" => {
                kill(theirs.envoy_pid(), Signal::SIGKILL).expect("Envoy runs");
                (theirs, "envoy restart scheduled")
            }
            "undrained" => {
                assert_eq!(theirs.local("POST /drain", "").await.status, 200);
                assert_eq!(theirs.local("POST /undrain", "").await.status, 200);
                (theirs, "envoy stopped to reverse its drain")
            }
            _ => {
                let admin = format!("unix:{}", folder.join("state/admin.sock").display());
                let listener = format!("http://{}", envoy::probe_listener(ip));
                let watching = Builder::bare("drain-was-ready-watching")
                    .args(&["--no-envoy", "--admin", &admin, "--data-path", &listener])
                    .args(&ENDLESS)
                    .start_plain();
                watching.until(200, "ready").await;
                kill(theirs.envoy_pid(), Signal::SIGKILL).expect("Envoy runs");
                (watching, "envoy exited")
            }
        };
        wait::until_or(|| agent.log(), async || agent.log().contains(gone)).await;
        agent.signal(Signal::SIGTERM);
        let (code, log) = agent.end().await;
        assert_eq!(code, Some(0), "{way}: {log}");
        assert!(log.contains("while no ready Envoy runs, skipping drain"), "{way}: {log}");
    }
}

#[tokio::test]
async fn quit_stops_the_agent_and_drain_succeeds_without_one() {
    let sidecar = ready("quit", &[]).await;
    let url = format!("http://{}", sidecar.local_address());
    let quit = agent::run(&["quit", "--url", &url], &[]).await;
    assert_eq!(quit.code, Some(0), "{quit:?}");
    assert_eq!(sidecar.end().await.0, Some(0));
    let drain = agent::run(&["drain", "--url", &url], &[]).await;
    assert_eq!(drain.code, Some(0), "{drain:?}");
    assert!(drain.stderr.contains("nothing to drain"), "{drain:?}");
    let quit = agent::run(&["quit", "--url", &url, "--timeoutSeconds", "1"], &[]).await;
    assert_eq!(quit.code, Some(69), "{quit:?}");
}

/// With `--no-envoy` the agent asks Envoy to drain, and leaves the Envoy process running.
#[tokio::test]
async fn an_external_envoy_is_never_signalled() {
    let theirs = ready("drain-theirs", &[]).await;
    let admin = format!("unix:{}", theirs.folder.join("state/admin.sock").display());
    let listener = format!("http://{}", envoy::probe_listener(theirs.ip));
    let watching = Builder::bare("drain-watch")
        .args(&["--no-envoy", "--admin", &admin, "--data-path", &listener, "--drain-seconds", "0"])
        .start_plain();
    watching.until(200, "ready").await;
    watching.signal(Signal::SIGTERM);
    let (code, log) = watching.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(is_alive(theirs.envoy_pid()));
    assert_eq!(theirs.ready("").await.status, 200);
}

/// Envoy cannot reverse a drain, so the agent replaces it: the new one keeps connections open.
#[tokio::test]
async fn a_drain_is_reversed() {
    let sidecar = ready("drain-undrain", &ENDLESS).await;
    let url = format!("http://{}", sidecar.local_address());
    let undrain = async || agent::run(&["undrain", "--url", &url], &[]).await;
    let first = sidecar.envoy_pid();
    assert_eq!(undrain().await.code, Some(0), "without a drain it has no effect");
    assert_eq!(sidecar.envoy_pid(), first);
    for drains in 1..=2 {
        let old = sidecar.envoy_pid();
        assert_eq!(agent::run(&["drain", "--url", &url], &[]).await.code, Some(0));
        sidecar.until(503, "draining").await;
        assert_eq!(undrain().await.code, Some(0), "{}", sidecar.log());
        let what = || format!("Envoy is replaced\n{}", sidecar.log());
        wait::until_or(what, async || matches!(children(sidecar.pid())[..], [new] if new != old)).await;
        sidecar.until(200, "ready").await;
        connection(&sidecar).await;
        let exits = sidecar.metric("app_health_agent_envoy_exits_total{cause=\"requested\"}").await;
        assert_eq!(exits, f64::from(drains));
    }
    sidecar.signal(Signal::SIGTERM);
    sidecar.until(503, "draining").await;
    let late = undrain().await;
    assert_eq!(late.code, Some(69), "{late:?}");
    sidecar.signal(Signal::SIGTERM);
    assert_eq!(sidecar.end().await.0, Some(0));
    let missing = undrain().await;
    assert!(missing.code == Some(69) && missing.stderr.contains("no agent listens"), "{missing:?}");
}
