//! Measures the memory of an agent with many endpoints, and while a large response passes through.

use std::time::Duration;

use kit::report::Row;
use kit::vm::xds_resources::{assignments, cluster_name, clusters};
use tokio::time::sleep;
use xds::type_url::{CLUSTER, ENDPOINT};

use crate::Failure;
use crate::route::{Link, Route};

const CLUSTERS: u8 = 100;
const ENDPOINTS: u8 = 100;
const MIB: f64 = 1_048_576.0;
/// What makes a response of all endpoints 16 MiB large.
const PADDING: usize = (16 << 20) / CLUSTERS as usize;
/// Wait until the configuration is stored, and memory that only this needs is released.
const SETTLE: Duration = Duration::from_secs(8);

pub(crate) async fn measure() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for route in [Route::Agent, Route::PilotAgent] {
        let [before, anonymous, idle, peak, anonymous_peak] = round(route).await?;
        let row = |what: &str, value| Row::new(format!("memory, {}, {what}", route.name()), value, "MiB");
        let idle = row("10,000 endpoints", idle);
        let peak = row("peak during a response of 16 MiB", peak);
        rows.push(row("without resources", before));
        let anonymous = row("without resources, without files", anonymous);
        rows.push(if route == Route::Agent { anonymous.at_most(3.0) } else { anonymous });
        let anonymous_peak = row("peak during a response of 16 MiB, without files", anonymous_peak);
        if route == Route::Agent {
            rows.extend([idle.at_most(8.0), peak.at_most(12.0), anonymous_peak.at_most(23.0)]);
        } else {
            rows.extend([idle, peak, anonymous_peak]);
        }
    }
    Ok(rows)
}

/// Returns the memory before the first stream, the part of it that is not mapped files, the memory with the
/// endpoints, that at the peak, and the part of the latter that is not mapped files, in MiB.
async fn round(route: Route) -> Result<[f64; 5], Failure> {
    let link = Link::start("b-memory", route).await;
    let process = link.proxy.as_ref().ok_or("nothing between control plane and client")?.process();
    sleep(SETTLE).await;
    let before = process.rss();
    let anonymous = before - process.resident_files();
    let names: Vec<String> = (0..CLUSTERS).map(cluster_name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    link.server.push(CLUSTER, clusters(CLUSTERS));
    let mut stream = link.open(CLUSTER, &[]).await;
    let response = stream.response().await;
    stream.acknowledge(&response, &[]).await;
    link.acknowledged(CLUSTER).await;
    link.server.push(ENDPOINT, assignments(CLUSTERS, ENDPOINTS, 0));
    stream.subscribe(ENDPOINT, &names).await;
    let response = stream.response().await;
    stream.acknowledge(&response, &names).await;
    link.acknowledged(ENDPOINT).await;
    sleep(SETTLE).await;
    let idle = process.rss();
    process.reset_peak_rss();
    link.server.push(ENDPOINT, assignments(CLUSTERS, ENDPOINTS, PADDING));
    let response = stream.response().await;
    stream.acknowledge(&response, &names).await;
    link.acknowledged(ENDPOINT).await;
    let peak = process.peak_rss();
    Ok([before, anonymous, idle, peak, peak - process.resident_files()].map(mib))
}

fn mib(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes).expect("less than 4 GiB")) / MIB
}
