//! Measures how long the agent takes to repeat Envoy's subscriptions at a control plane that is reachable
//! again.

use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, quantile};
use kit::vm::push_server::PushServer;
use kit::vm::xds_resources::{assignments, cluster_name, clusters};
use kit::wait;
use xds::type_url::{CLUSTER, ENDPOINT};

use crate::route::{Link, Route};
use crate::{Failure, millis};

const CLUSTERS: u8 = 100;
const ENDPOINTS: u8 = 100;

pub(crate) async fn measure(quiet: &mut QuietRounds, rounds: u32) -> Result<Vec<Row>, Failure> {
    let mut link = Link::start("b-replay", Route::Agent).await;
    let names: Vec<String> = (0..CLUSTERS).map(cluster_name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    link.server.push(CLUSTER, clusters(CLUSTERS));
    link.server.push(ENDPOINT, assignments(CLUSTERS, ENDPOINTS, 0));
    let mut stream = link.open(CLUSTER, &[]).await;
    let response = stream.response().await;
    stream.acknowledge(&response, &[]).await;
    stream.subscribe(ENDPOINT, &names).await;
    let response = stream.response().await;
    stream.acknowledge(&response, &names).await;
    link.acknowledged(ENDPOINT).await;
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push(quiet.round(async || Ok::<_, Failure>(round(&mut link).await)).await?);
    }
    Ok(vec![
        Row::new("replay, median", median(&times), "ms"),
        Row::new("replay, slowest", quantile(&times, 1.0), "ms").at_most(50.0),
    ])
}

/// Replaces the control plane by another one at the same address, and returns the time of the replay in
/// milliseconds.
async fn round(link: &mut Link) -> f64 {
    let address = link.server.address;
    // The address is in use until the listener is closed, which happens after the drop.
    link.server = PushServer::listen(([127, 0, 0, 1], 0).into()).await;
    let server = wait::until_some(
        || format!("{address} is free"),
        async || PushServer::try_listen(address).await.ok(),
    )
    .await;
    link.server = server;
    let last = async || {
        let requests = [CLUSTER, ENDPOINT].map(|of| link.server.first_request(of));
        Some(requests[0]?.max(requests[1]?) - link.server.accepted()?)
    };
    millis(wait::until_some(|| "the subscriptions are repeated".to_owned(), last).await)
}
