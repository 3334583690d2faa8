//! Tests of how the agent recovers from failures of the server and of the network.

use std::time::Duration;

use kit::plain_server::{self, PlainServer, Script, Seen};
use kit::process::Process;
use serde_json::json;
use tokio::time::{sleep, timeout};
use tonic::Code;

use crate::reporter_kit::{Vm, is_last, level};

/// The agent detects a dead peer within 30 s; the rest is a margin for a slow machine.
const FOUND: Duration = Duration::from_secs(60);

fn ours() -> Script {
    Script::ours(json!({"session": 17, "heartbeatSeconds": 60}))
}

#[tokio::test]
async fn a_report_that_nobody_acknowledges_is_said_again_then_elsewhere() {
    let server = PlainServer::start(Script { acknowledges: false, ..ours() }).await;
    let _vm = Vm::probed("faults-unacknowledged").reports_to(&server).start();
    server.until("another stream", |seen| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours())).await;
    let first: Vec<u64> = server
        .seen()
        .iter()
        .filter(|seen| seen.stream == 0 && seen.is_ours() && level(seen).1 == "Healthy")
        .map(|seen| level(seen).0)
        .collect();
    assert_eq!(first, [1, 1], "expected the report and one repetition");
}

#[tokio::test]
async fn the_newest_state_alone_survives_an_outage() {
    let server = PlainServer::start(ours()).await;
    let (address, vm) = (server.address, Vm::probed("faults-outage").reports_to(&server).start());
    server.until("healthy", |seen| is_last(seen, "Healthy", "ProbeSucceeded")).await;
    drop(server);
    vm.until_logged("disconnected from the discovery server").await;
    for healthy in [false, true, false] {
        vm.set(healthy);
        sleep(Duration::from_millis(1500)).await;
    }
    let server = PlainServer::listen(address, ours(), None).await;
    server.until("the state", |seen| is_last(seen, "Unhealthy", "ExecExit")).await;
    let ours = server.seen().iter().filter(|seen| seen.is_ours()).count();
    assert_eq!(ours, 1, "{:#?}", server.seen());
}

#[tokio::test]
async fn a_connection_that_closes_after_goaway_is_replaced() {
    let server = PlainServer::start(ours()).await;
    let _vm = Vm::probed("faults-goaway").reports_to(&server).start();
    server.until("healthy", |seen| is_last(seen, "Healthy", "ProbeSucceeded")).await;
    server.go_away();
    let again = |seen: &[Seen]| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours());
    server.until("another stream", again).await;
    timeout(FOUND, async {
        while server.connections() != 1 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the old connection is closed");
}

#[tokio::test]
async fn a_refusal_is_told_and_is_not_for_ever() {
    let ends = Some((Duration::ZERO, Code::PermissionDenied));
    let server = PlainServer::start(Script { ends, ..ours() }).await;
    let vm = Vm::probed("faults-refused").reports_to(&server).start();
    vm.until_logged("PermissionDenied: ended by the script").await;
    assert!(vm.metrics().await.contains("discovery_connects_total{result=\"refused\"} 1"));
    server.change(|script| script.ends = None);
    server.until("healthy", |seen| is_last(seen, "Healthy", "ProbeSucceeded")).await;
}

/// The connection stays open but the server sends nothing, so only PINGs detect the failure.
#[tokio::test]
async fn a_mute_server_is_found() {
    let (address, accepted) = plain_server::mute().await;
    let address = address.to_string();
    let _vm = Vm::probed("faults-mute").args(&["--discovery", &address, "--discovery-plaintext"]).start();
    timeout(FOUND, async {
        while *accepted.lock().expect("no holder of the lock panicked") < 2 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("another attempt");
}

#[tokio::test]
async fn istiod_gets_no_pings_that_it_refuses() {
    let server = PlainServer::start(Script::plain()).await;
    let _vm = Vm::probed("faults-pings").reports_to(&server).start();
    timeout(FOUND, async {
        while server.pings().len() < 2 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("two pings");
    let pings = server.pings();
    let gaps: Vec<Duration> = pings.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap >= Duration::from_secs(15)), "{gaps:?}");
    assert_eq!(server.streams(), 1);
}

#[tokio::test]
async fn an_outage_costs_no_memory() {
    let vm =
        Vm::probed("faults-memory").args(&["--discovery", "127.0.0.1:9", "--discovery-plaintext"]).start();
    vm.until_logged("disconnected from the discovery server").await;
    sleep(Duration::from_secs(3)).await;
    let pid = u32::try_from(vm.sidecar.pid().as_raw()).expect("a number");
    let before = Process::new(pid).rss();
    for round in 0..10 {
        vm.set(round % 2 == 1);
        sleep(Duration::from_millis(1200)).await;
    }
    let after = Process::new(pid).rss();
    assert!(after < before + (1 << 20), "{before} to {after} bytes");
    let view = vm.view().await;
    assert!(
        view["generation"].as_u64().is_some_and(|generation| generation >= 5),
        "probing must continue: {view}"
    );
    assert_eq!(view["stream"]["connected"], json!(false));
}
