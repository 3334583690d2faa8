//! A control plane that violates the protocol, and an Envoy that reads nothing: the last good
//! configuration stays, the reason is visible, and memory stays bounded.

use std::net::SocketAddr;

use kit::app::switched::Behavior;
use kit::process::Process;
use kit::sidecar::{Builder, Sidecar};
use kit::vm::documents::{GROUP, NAMESPACE};
use kit::vm::envoy_stream::EnvoyStream;
use kit::vm::faulty_ads::{Fault, FaultyAds};
use kit::{envoy, wait};
use serde_json::Value;
use xds::type_url::ENDPOINT;

use super::setup::Setup;

/// Size of each resource of a flood in bytes, and by how much the agent may grow: the responses that
/// Envoy has not acknowledged, and what the allocator keeps.
const RESOURCE: usize = 256 << 10;
const GROWTH: u64 = 24 << 20;

/// The memory of an agent before a flood.
pub(super) struct Memory {
    process: Process,
    before: u64,
}

impl Memory {
    pub(super) fn of(sidecar: &Sidecar) -> Self {
        let process = Process::new(u32::try_from(sidecar.pid().as_raw()).expect("a process id"));
        Self { process, before: process.rss() }
    }

    pub(super) fn assert_bounded(&self) {
        let growth = self.process.peak_rss().saturating_sub(self.before);
        assert!(growth < GROWTH, "memory grew by {growth} bytes from {}", self.before);
    }
}

/// Waits until Envoy has lost an endpoint and got it back, and checks that it kept its stream.
async fn follows_discovery_again(setup: &Setup) {
    setup.until_view("connected", |view| view["connected"] == true).await;
    setup.application.set_behavior(Behavior::Failing);
    setup.until_endpoints(&[]).await;
    setup.application.set_behavior(Behavior::Serving);
    setup.until_endpoints(&[setup.address()]).await;
    assert_eq!(setup.stat("cluster.xds-grpc.upstream_rq_total").await, Some(1), "Envoy's stream was lost");
}

/// Replaces discovery by a faulty server.
async fn fail(setup: &mut Setup, fault: Fault) -> FaultyAds {
    setup.discovery.kill().await;
    FaultyAds::listen(setup.discovery.plaintext(), fault).await
}

#[tokio::test]
async fn messages_that_are_no_responses_change_nothing() {
    for variant in ["sotw", "delta"] {
        let mut setup = Setup::start(&format!("xds-malformed-{variant}"), &["--xds", variant]).await;
        let own = setup.address();
        setup.until_endpoints(&[own]).await;
        for (fault, reason) in [
            (Fault::Garbage, "the control plane sent a malformed response"),
            (Fault::Cut, "the stream ended inside a message"),
            (Fault::Huge, "message larger than 32 MiB"),
        ] {
            let server = fail(&mut setup, fault).await;
            // The agent gives the reason and tries again.
            let is_named =
                |view: &Value| view["lastError"].as_str().is_some_and(|text| text.contains(reason));
            setup.until_view(reason, |view| is_named(view) && server.streams() >= 2).await;
            assert_eq!(setup.endpoints().await, [own].into());
            assert_eq!(setup.stat("control_plane.connected_state").await, Some(1));
            server.stop().await;
            setup.discovery.start().await.unwrap();
            follows_discovery_again(&setup).await;
        }
        setup.stop().await;
    }
}

/// The server does not read either. The agent disconnects it, and not the Envoy whose rejections wait.
#[tokio::test]
async fn a_flood_of_resources_that_envoy_rejects() {
    let mut setup = Setup::start("xds-flood-rejected", &[]).await;
    let own = setup.address();
    setup.until_endpoints(&[own]).await;
    let memory = Memory::of(setup.sidecar());
    let server = fail(&mut setup, Fault::malformed_resources(ENDPOINT, RESOURCE)).await;
    let is_rejected = |view: &Value| endpoint_type(view)["nacks"].as_u64().is_some_and(|nacks| nacks >= 100);
    let rejected = |view: &Value| is_rejected(view) && server.streams() >= 2;
    let view = setup.until_view("rejected", rejected).await;
    assert!(!endpoint_type(&view)["lastNack"]["text"].is_null(), "{view:#}");
    assert_eq!(setup.endpoints().await, [own].into());
    memory.assert_bounded();
    assert!(setup.sidecar().log().contains("the control plane accepts no requests"));
    // The same text is logged once, however often it arrives.
    assert_eq!(setup.sidecar().log().matches("xDS response rejected by Envoy").count(), 1);
    server.stop().await;
    setup.discovery.start().await.unwrap();
    follows_discovery_again(&setup).await;
    setup.stop().await;
}

#[tokio::test]
async fn a_flood_of_a_type_that_envoy_does_not_subscribe_to() {
    let mut setup = Setup::start("xds-flood-other", &[]).await;
    let own = setup.address();
    setup.until_endpoints(&[own]).await;
    let memory = Memory::of(setup.sidecar());
    let server = fail(&mut setup, Fault::malformed_resources("type.googleapis.com/other", RESOURCE)).await;
    let is_dropped = |view: &Value| view["notSubscribed"].as_u64().is_some_and(|count| count >= 300);
    setup.until_view("dropped", is_dropped).await;
    assert_eq!(setup.endpoints().await, [own].into());
    memory.assert_bounded();
    assert_eq!(setup.sidecar().log().matches("Envoy does not subscribe to its type").count(), 1);
    server.stop().await;
    setup.discovery.start().await.unwrap();
    follows_discovery_again(&setup).await;
    setup.stop().await;
}

/// Returns an agent that starts no Envoy, between this server and the socket for Envoy.
pub(super) fn bare_agent(name: &str, server: SocketAddr) -> Builder {
    Builder::bare(name)
        .args(&["--no-envoy", "--data-path", "off", "--envoy-readiness", "off", "--proxy-xds"])
        .args(&["--discovery", &server.to_string(), "--discovery-plaintext"])
        .args(&["--group", GROUP, "--namespace", NAMESPACE])
}

/// Envoy reads and accepts them. The agent forgets what Envoy holds, and does not store the type.
#[tokio::test]
async fn a_flood_of_removed_names() {
    let mut setup = Setup::start("xds-flood-removed", &["--xds", "delta"]).await;
    let own = setup.address();
    setup.until_endpoints(&[own]).await;
    let memory = Memory::of(setup.sidecar());
    let server = fail(&mut setup, Fault::removed_names(ENDPOINT, 200_000)).await;
    let are_accepted = |view: &Value| endpoint_type(view)["acks"].as_u64().is_some_and(|acks| acks >= 20);
    let view = setup.until_view("accepted", are_accepted).await;
    assert_eq!(endpoint_type(&view)["notStored"], "more than 100,000 resources", "{view:#}");
    assert_eq!(setup.sidecar().metric("app_health_agent_xds_types_not_stored").await, 1.0);
    assert_eq!(setup.sidecar().log().matches("xDS resources of a type not stored").count(), 1);
    memory.assert_bounded();
    assert_eq!(setup.endpoints().await, [own].into());
    server.stop().await;
    setup.discovery.start().await.unwrap();
    // Only Envoy knows what it holds, so it opens another stream.
    setup.until_view("connected", |view| view["connected"] == true && !view["envoy"].is_null()).await;
    setup.application.set_behavior(Behavior::Failing);
    setup.until_endpoints(&[]).await;
    setup.stop().await;
}

/// It is disconnected, the flood waits in the control plane, and the next stream gets what the first
/// one accepted.
#[tokio::test]
async fn an_envoy_that_never_reads_is_disconnected() {
    const CLUSTERS: [&str; 1] = ["payments"];
    let name = "xds-never-reads";
    let server =
        FaultyAds::listen("127.0.0.1:0".parse().unwrap(), Fault::endpoints(CLUSTERS[0], RESOURCE)).await;
    let sidecar = bare_agent(name, server.address).start_plain();
    let state = envoy::folder(name).join("state");
    let (socket, cache) = (state.join("xds.sock"), state.join("xds-cache"));
    wait::until_or(|| sidecar.log(), async || socket.exists()).await;
    let mut stream = EnvoyStream::open(&socket, ENDPOINT, &CLUSTERS).await;
    let accepted = stream.response().await;
    stream.acknowledge(&accepted, &CLUSTERS).await;
    wait::until_or(|| sidecar.log(), async || cache.exists()).await;
    let memory = Memory::of(&sidecar);
    let reason = "Envoy does not read";
    wait::until_or(|| sidecar.log(), async || sidecar.log().contains(reason)).await;
    memory.assert_bounded();
    drop(stream);
    server.stop().await;
    let mut next = EnvoyStream::open(&socket, ENDPOINT, &CLUSTERS).await;
    let served = next.response().await;
    assert!(served.resources == accepted.resources, "another configuration\n{}", sidecar.log());
    assert!(sidecar.log().contains("xDS configuration served from the cache"), "{}", sidecar.log());
}

/// Returns the part of the view about endpoints.
fn endpoint_type(view: &Value) -> &Value {
    let types = view["types"].as_array().into_iter().flatten();
    types.into_iter().find(|found| found["type"] == ENDPOINT).unwrap_or(&Value::Null)
}
