//! Measures how long a push takes, and how much longer through an agent.

use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, quantile};
use kit::vm::envoy_stream::EnvoyStream;
use kit::vm::xds_resources::{assignments, cluster_name};
use xds::type_url::ENDPOINT;

use crate::route::{Link, Route};
use crate::{Failure, millis};

const ENDPOINTS: u8 = 100;
/// Pushes in a block; short blocks make other load of the machine affect all routes alike.
const BLOCK: u32 = 50;
/// Pushes before the first measurement.
const WARM_UP: u32 = 100;

/// Measures `rounds` rounds of `pushes` pushes on each route.
pub(crate) async fn measure(quiet: &mut QuietRounds, rounds: u32, pushes: u32) -> Result<Vec<Row>, Failure> {
    let name = cluster_name(0);
    let mut links = Vec::new();
    for route in Route::ALL {
        let link = Link::start("b-push", route).await;
        link.server.push(ENDPOINT, assignments(1, ENDPOINTS, 0));
        let mut stream = link.open(ENDPOINT, &[&name]).await;
        let response = stream.response().await;
        stream.acknowledge(&response, &[&name]).await;
        block(&link, &mut stream, WARM_UP).await;
        links.push((link, stream));
    }
    let mut measured = Vec::new();
    for _ in 0..rounds {
        measured.push(quiet.round(async || Ok::<_, Failure>(round(&mut links, pushes).await)).await?);
    }
    Ok(rows(&measured))
}

/// Returns the p50 and the p99 of each route in milliseconds.
async fn round(links: &mut [(Link, EnvoyStream)], pushes: u32) -> Vec<[f64; 2]> {
    let mut times = vec![Vec::new(); links.len()];
    for _ in 0..pushes.div_ceil(BLOCK) {
        for ((link, stream), times) in links.iter_mut().zip(&mut times) {
            times.extend(block(link, stream, BLOCK).await);
        }
    }
    times.iter().map(|times| [median(times), quantile(times, 0.99)]).collect()
}

/// Pushes one version after another, and returns the time of each in milliseconds.
async fn block(link: &Link, stream: &mut EnvoyStream, pushes: u32) -> Vec<f64> {
    let name = cluster_name(0);
    let mut times = Vec::new();
    for _ in 0..pushes {
        link.acknowledged(ENDPOINT).await;
        let begin = link.server.push(ENDPOINT, assignments(1, ENDPOINTS, 0));
        let response = stream.response().await;
        times.push(millis(begin.elapsed()));
        stream.acknowledge(&response, &[&name]).await;
    }
    times
}

fn rows(measured: &[Vec<[f64; 2]>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, name, bar) in [(0, "p50", 0.3), (1, "p99", 2.0)] {
        for (number, route) in Route::ALL.into_iter().enumerate() {
            let times: Vec<f64> = measured.iter().map(|round| round[number][index]).collect();
            rows.push(Row::new(format!("push, {}, {name}", route.name()), median(&times), "ms"));
            let row = Row::new(
                format!("push, added by {}, {name}", route.name()),
                added(measured, route, index),
                "ms",
            );
            match route {
                Route::Direct => {}
                Route::Agent => rows.push(row.at_most(bar)),
                Route::Relay | Route::PilotAgent => rows.push(row),
            }
        }
        let ratio = added(measured, Route::Agent, index) / added(measured, Route::PilotAgent, index);
        let row = Row::new(format!("push, added by agent / by pilot-agent, {name}"), ratio, "ratio");
        rows.push(if index == 0 { row.at_most(0.5) } else { row });
    }
    rows
}

/// Returns the median over the rounds of what a route takes longer than the direct one, in milliseconds.
fn added(measured: &[Vec<[f64; 2]>], route: Route, index: usize) -> f64 {
    let number = Route::ALL.iter().position(|other| *other == route).expect("one of all routes");
    let added: Vec<f64> = measured.iter().map(|round| round[number][index] - round[0][index]).collect();
    median(&added)
}
