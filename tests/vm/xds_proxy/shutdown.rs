//! An agent with `--proxy-xds` without an Envoy, and its end: the final health report and the last
//! configuration.

use std::path::Path;

use kit::sidecar::Sidecar;
use kit::vm::discovery::Discovery;
use kit::vm::documents::{group, probe, service};
use kit::vm::envoy_stream::EnvoyStream;
use kit::vm::faulty_ads::{Fault, FaultyAds};
use kit::vm::machine::Machine;
use kit::{envoy, net, wait};
use nix::sys::signal::Signal;
use xds::type_url::ENDPOINT;

use super::faults::bare_agent;
use super::setup::Setup;

const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const CONNECTED: &str = "connected to the discovery server";
const LOST: &str = "disconnected from the discovery server";

/// Envoy's stream may end before the agent's, or remain.
#[tokio::test]
async fn the_final_report_uses_the_stream_of_envoy() {
    for (name, ends_first) in [("xds-goodbye-first", true), ("xds-goodbye-open", false)] {
        let folder = envoy::folder(name);
        // Only the final report can remove the endpoint.
        let mut discovery =
            Discovery::new(&folder, &[group(&probe()), service()]).flags(&["--disconnect-grace", "3600s"]);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let mut machine = Machine::new(&folder, "m1", net::loopback()).await;
        machine.report_plaintext(&discovery);
        machine.add_flags(&["--proxy-xds"]);
        machine.start_agent().expect("the agent starts");
        let socket = folder.join("m1/state/xds.sock");
        wait::until_or(|| machine.log(), async || socket.exists()).await;
        let stream = EnvoyStream::open(&socket, LISTENER, &[]).await;
        let is_healthy = async || discovery.workload(machine.ip).await["condition"]["status"] == "True";
        wait::until_or(|| machine.log(), is_healthy).await;
        let stream = (!ends_first).then_some(stream);
        let ended = "xDS stream of Envoy ended";
        if ends_first {
            wait::until_or(|| machine.log(), async || machine.log().contains(ended)).await;
        }
        machine.signal(Signal::SIGTERM);
        assert_eq!(machine.agent_end().await, Some(0), "{}", machine.log());
        let workload = discovery.workload(machine.ip).await;
        assert_eq!(workload["condition"]["reason"], "Terminating", "{workload:#}\n{}", machine.log());
        assert_eq!(machine.log().matches(CONNECTED).count(), 1, "{}", machine.log());
        assert!(!machine.log().contains(LOST), "{}", machine.log());
        drop(stream);
    }
}

/// Neither before an Envoy, nor after it.
#[tokio::test]
async fn health_is_reported_without_an_envoy() {
    let folder = envoy::folder("xds-alone");
    let mut discovery =
        Discovery::new(&folder, &[group(&probe()), service()]).flags(&["--disconnect-grace", "3600s"]);
    discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    let mut machine = Machine::new(&folder, "m1", net::loopback()).await;
    machine.report_plaintext(&discovery);
    machine.add_flags(&["--proxy-xds"]);
    machine.start_agent().expect("the agent starts");
    let condition = async || discovery.workload(machine.ip).await["condition"].clone();
    wait::until_or(|| machine.log(), async || condition().await["status"] == "True").await;
    let stream = EnvoyStream::open(&folder.join("m1/state/xds.sock"), LISTENER, &[]).await;
    wait::until_or(|| machine.log(), async || machine.log().matches(CONNECTED).count() == 2).await;
    drop(stream);
    wait::until_or(|| machine.log(), async || machine.log().matches(CONNECTED).count() == 3).await;
    machine.signal(Signal::SIGTERM);
    assert_eq!(machine.agent_end().await, Some(0), "{}", machine.log());
    let workload = discovery.workload(machine.ip).await;
    assert_eq!(workload["condition"]["reason"], "Terminating", "{workload:#}\n{}", machine.log());
    assert!(!machine.log().contains(LOST), "{}", machine.log());
}

#[tokio::test]
async fn the_final_report_of_an_agent_with_its_own_envoy() {
    let setup = Setup::start("xds-goodbye", &[]).await;
    setup.until_endpoints(&[setup.address()]).await;
    // Before Envoy is ready for the first time, the agent ends with another code.
    setup.sidecar().until(200, "ready").await;
    let (log, workload) = setup.terminate().await;
    assert_eq!(workload["condition"]["reason"], "Terminating", "{workload:#}\n{log}");
    assert_eq!(log.matches(CONNECTED).count(), 1, "{log}");
    assert!(!log.contains(LOST), "{log}");
}

/// The next write would be due five seconds after the first one.
#[tokio::test]
async fn the_last_configuration_is_stored_before_the_exit() {
    let server = FaultyAds::listen("127.0.0.1:0".parse().unwrap(), Fault::endpoints("payments", 1000)).await;
    let sidecar: Sidecar = bare_agent("xds-stored-last", server.address).start_plain();
    let state = envoy::folder("xds-stored-last").join("state");
    let (socket, cache): (_, &Path) = (state.join("xds.sock"), &state.join("xds-cache"));
    wait::until_or(|| sidecar.log(), async || socket.exists()).await;
    let mut stream = EnvoyStream::open(&socket, ENDPOINT, &["payments"]).await;
    let first = stream.response().await;
    stream.acknowledge(&first, &["payments"]).await;
    wait::until_or(|| sidecar.log(), async || cache.exists()).await;
    std::fs::remove_file(cache).expect("a stored configuration");
    let second = stream.response().await;
    stream.acknowledge(&second, &["payments"]).await;
    // The next response is sent after the acknowledgement was processed.
    for _ in 0..20 {
        let next = stream.response().await;
        stream.acknowledge(&next, &["payments"]).await;
    }
    sidecar.signal(Signal::SIGTERM);
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(cache.exists(), "{log}");
    assert!(!state.join("xds-cache.partial").exists());
}
