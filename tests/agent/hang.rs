//! Tests of an Envoy that hangs, which SIGSTOP causes here, and of one that only seems to.

use kit::caller;
use kit::process::{children, is_alive};
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use nix::sys::signal::{Signal, kill};

async fn ready(name: &str, args: &[&str]) -> Sidecar {
    let sidecar = Builder::new(name).args(args).start();
    sidecar.until(200, "ready").await;
    sidecar
}

#[tokio::test]
async fn a_hung_envoy_is_killed_and_replaced() {
    let sidecar = ready("hang-always", &["--envoy-hang-seconds", "2", "--envoy-restart", "always"]).await;
    let hung = sidecar.envoy_pid();
    kill(hung, Signal::SIGSTOP).expect("Envoy runs");
    let what = || format!("Envoy is replaced\n{}", sidecar.log());
    wait::until_or(what, async || matches!(children(sidecar.pid())[..], [new] if new != hung)).await;
    sidecar.until(200, "ready").await;
    assert_eq!(sidecar.metric("app_health_agent_envoy_exits_total{cause=\"hung\"}").await, 1.0);
    let log = sidecar.log();
    assert!(log.contains("envoy killed: neither its probe listener nor its admin interface"), "{log}");
}

#[tokio::test]
async fn the_agent_exits_with_a_hung_envoy() {
    let sidecar = ready("hang-never", &["--envoy-hang-seconds", "2"]).await;
    kill(sidecar.envoy_pid(), Signal::SIGSTOP).expect("Envoy runs");
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(70), "{log}");
    assert!(log.contains("app-health-agent: Envoy did not respond for 2 s and was killed"), "{log}");
}

/// Neither a drain nor missing configuration silences Envoy, so neither the agent nor a liveness
/// probe of the sidecar ends it.
#[tokio::test]
async fn a_draining_or_waiting_envoy_is_not_hung() {
    let flags = ["--live", "--envoy-hang-seconds", "1"];
    let draining = ready("hang-drain", &flags).await;
    assert_eq!(draining.local("POST /drain", "").await.status, 200);
    draining.until(503, "draining").await;
    let waiting = Builder::new("hang-waits").args(&flags).args(&["--dynamic", "on"]).start();
    waiting.until(503, "clusters not received\nlisteners not received").await;
    for sidecar in [draining, waiting] {
        let envoy = sidecar.envoy_pid();
        sidecar.until_data_path_requests(2.0).await;
        assert!(is_alive(envoy), "{}", sidecar.log());
        let live = caller::get(sidecar.ready_address(), "/healthz/live", &[]).await;
        assert_eq!((live.status, live.text().as_str()), (200, "alive\n"));
    }
}
