//! Measures how soon a real Envoy is ready with a control plane, and from the stored configuration
//! without one.

use std::time::Duration;

use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, quantile};
use kit::sidecar::{Builder, Sidecar};
use kit::vm::push_server::PushServer;
use kit::vm::stored_xds;
use kit::vm::xds_resources::{assignments, clusters};
use kit::wait;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};
use xds::type_url::{CLUSTER, ENDPOINT, LISTENER};

use crate::route::{flags, stored};
use crate::{Failure, millis};

const CLUSTERS: u8 = 100;
const ENDPOINTS: u8 = 100;
/// Pause between two readiness requests; a shorter one would slow down the start of Envoy.
const PACE: Duration = Duration::from_millis(5);

pub(crate) async fn measure(quiet: &mut QuietRounds, rounds: u32) -> Result<Vec<Row>, Failure> {
    let (mut with, mut from_cache) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (served, cached) = quiet.round(round).await?;
        with.push(served);
        from_cache.push(cached);
    }
    Ok(vec![
        Row::new("start, ready with a control plane, median", median(&with), "ms"),
        Row::new("start, ready from the stored configuration, median", median(&from_cache), "ms"),
        Row::new("start, ready from the stored configuration, slowest", quantile(&from_cache, 1.0), "ms")
            .at_most(500.0),
    ])
}

/// Starts the agent and its Envoy with a control plane, and again after the control plane has gone.
/// Returns both times in milliseconds.
async fn round() -> Result<(f64, f64), Failure> {
    const NAME: &str = "b-xds-start";
    let server = PushServer::listen(([127, 0, 0, 1], 0).into()).await;
    server.push(LISTENER, Vec::new());
    server.push(CLUSTER, clusters(CLUSTERS));
    server.push(ENDPOINT, assignments(CLUSTERS, ENDPOINTS, 0));
    let address = server.address.to_string();
    let (sidecar, served) = start(Builder::new(NAME), &address).await;
    let (ip, cache) = (sidecar.ip, stored(&sidecar.folder));
    wait::until("the endpoints are stored", async || stored_xds::text(&cache).contains("10.0.99.99")).await;
    stop(sidecar).await;
    drop(server);
    let (sidecar, cached) = start(Builder::again(NAME, ip), &address).await;
    let ready = sidecar.ready("").await.text();
    stop(sidecar).await;
    if !ready.contains("configuration from cache") {
        return Err(format!("ready, but not from the stored configuration: {ready}").into());
    }
    Ok((served, cached))
}

async fn start(builder: Builder, discovery: &str) -> (Sidecar, f64) {
    let begin = Instant::now();
    let sidecar = builder.args(&flags(discovery)).args(&["--concurrency", "1"]).start();
    while sidecar.ready("").await.status != 200 {
        sleep(PACE).await;
    }
    (sidecar, millis(begin.elapsed()))
}

async fn stop(sidecar: Sidecar) {
    sidecar.signal(Signal::SIGINT);
    sidecar.signal(Signal::SIGINT);
    sidecar.end().await;
}
