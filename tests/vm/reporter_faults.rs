//! Tests of how the agent recovers from failures of the server and of the network.

use std::net::SocketAddr;
use std::time::Duration;

use kit::net;
use kit::process::Process;
use kit::vm::scripted_ads::{self, Script, ScriptedAds, Seen};
use kit::wait;
use serde_json::json;
use tonic::Code;

use crate::reporter_support::{AgentConfig, last_report_is, report_fields};

/// istiod rejects a client that sends PINGs less than 15 s apart. The agent sends one every 20 s; two
/// seconds less than the minimum are a margin for a busy machine that receives one late.
const ISTIOD_MINIMUM: Duration = Duration::from_secs(13);

fn ours() -> Script {
    Script::ours(json!({"session": 17, "heartbeatSeconds": 60}))
}

#[tokio::test]
async fn an_unacknowledged_report_is_repeated_and_then_sent_on_another_stream() {
    let server = ScriptedAds::start(Script { acknowledges: false, ..ours() }).await;
    let _vm = AgentConfig::probed("faults-unacknowledged").reports_to(&server).start();
    server.until("another stream", |seen| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours())).await;
    let first: Vec<u64> = server
        .seen()
        .iter()
        .filter(|seen| seen.stream == 0 && seen.is_ours() && report_fields(seen).1 == "Healthy")
        .map(|seen| report_fields(seen).0)
        .collect();
    assert_eq!(first, [1, 1], "expected the report and one repetition");
}

#[tokio::test]
async fn only_the_newest_state_is_reported_after_an_outage() {
    // The port is reserved for the second server.
    let address = SocketAddr::new(net::loopback(), 15010);
    let server = ScriptedAds::listen(address, ours(), None).await;
    let vm = AgentConfig::probed("faults-outage").reports_to(&server).start();
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    drop(server);
    vm.until_disconnected("").await;
    for healthy in [false, true, false] {
        vm.set_and_wait(healthy).await;
    }
    let server = ScriptedAds::listen(address, ours(), None).await;
    server.until("the state", |seen| last_report_is(seen, "Unhealthy", "ExecExit")).await;
    let ours = server.seen().iter().filter(|seen| seen.is_ours()).count();
    assert_eq!(ours, 1, "{:#?}", server.seen());
}

#[tokio::test]
async fn a_connection_that_closes_after_goaway_is_replaced() {
    let server = ScriptedAds::start(ours()).await;
    let _vm = AgentConfig::probed("faults-goaway").reports_to(&server).start();
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    server.go_away();
    let again = |seen: &[Seen]| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours());
    server.until("another stream", again).await;
    wait::until("the end of the old connection", async || server.connections() == 1).await;
}

#[tokio::test]
async fn a_rejected_stream_is_retried() {
    let ends = Some((Duration::ZERO, Code::PermissionDenied));
    let server = ScriptedAds::start(Script { ends, ..ours() }).await;
    let vm = AgentConfig::probed("faults-refused").reports_to(&server).start();
    vm.until_disconnected("PermissionDenied: ended by the script").await;
    assert!(vm.metric("app_health_agent_discovery_connects_total{result=\"refused\"}").await > 0);
    server.change(|script| script.ends = None);
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
}

/// The connection stays open but the server sends nothing, so only PINGs detect the failure.
#[tokio::test]
async fn pings_detect_a_silent_server() {
    let (address, accepted) = scripted_ads::mute().await;
    let address = address.to_string();
    let _vm =
        AgentConfig::probed("faults-mute").args(&["--discovery", &address, "--discovery-plaintext"]).start();
    wait::until("another attempt", async || *accepted.lock().expect("no holder of the lock panicked") >= 2)
        .await;
}

#[tokio::test]
async fn pings_are_rare_enough_for_istiod() {
    let server = ScriptedAds::start(Script::plain()).await;
    let _vm = AgentConfig::probed("faults-pings").reports_to(&server).start();
    wait::until("two pings", async || server.pings().len() >= 2).await;
    let pings = server.pings();
    let gaps: Vec<Duration> = pings.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A ping that is received late shortens the next gap.
    assert!(gaps.iter().all(|gap| *gap >= ISTIOD_MINIMUM), "{gaps:?}");
    assert_eq!(server.streams(), 1);
}

#[tokio::test]
async fn an_outage_does_not_increase_memory() {
    let vm = AgentConfig::probed("faults-memory")
        .args(&["--discovery", "127.0.0.1:9", "--discovery-plaintext"])
        .start();
    vm.until_disconnected("refused").await;
    let rounds = async |count: u32| {
        for _ in 0..count {
            vm.set_and_wait(false).await;
            vm.set_and_wait(true).await;
        }
    };
    // The first rounds allocate what the agent needs once.
    rounds(2).await;
    let pid = u32::try_from(vm.sidecar.pid().as_raw()).expect("a number");
    let before = Process::new(pid).rss();
    rounds(5).await;
    let after = Process::new(pid).rss();
    assert!(after < before + (1 << 20), "{before} to {after} bytes");
    assert_eq!(vm.view().await["stream"]["connected"], json!(false));
}
