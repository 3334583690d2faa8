//! The status port, 15020, if the agent answers kubelet's probes itself: probes and hooks, the merged metrics,
//! and the readiness of the sidecar, as Istio's agent has them on this port.

use hyper::Method;
use serving::http_server::{HttpRequest, Limits, Rate, Response, not_allowed, not_found};

use crate::readiness_server::{READY_PATH, ReadinessServer};
use probe_server::ProbeServer;
use scrape::Scraper;

const MERGED: &str = "/stats/prometheus";
/// Paths of this port, as they appear in metrics; probes are `other`.
pub const PATHS: [&str; 2] = [MERGED, READY_PATH];
/// New connections of one client: as many as the filter's listener permits requests.
const RATE: Rate = Rate { per_second: 200, burst: 400 };

#[derive(Clone)]
pub struct StatusServer {
    pub probes: ProbeServer,
    pub readiness: ReadinessServer,
    pub scraper: Scraper,
}

/// Returns the limits of this port, for a process that may open this many files. Each connection may need
/// another one to the application. Half of the connections are the node's.
pub fn limits(descriptors: u64) -> Limits {
    let connections = descriptors.saturating_sub(120) / 2;
    let connections = usize::try_from(connections.clamp(32, 512)).expect("at most 512");
    Limits {
        connections,
        trusted_connections: connections / 2,
        source_rate: Some(RATE),
        // A request with a body has an answer of its own.
        bodies: true,
        ..Limits::ONE_REQUEST
    }
}

impl StatusServer {
    pub async fn answer(self, request: HttpRequest) -> Response {
        match request.path() {
            path if ProbeServer::has_path(path) => self.probes.answer(request).await,
            READY_PATH => self.readiness.answer(request).await,
            MERGED if request.method != Method::GET => not_allowed("GET"),
            MERGED => {
                let slot = request.slot.clone();
                let client = request.peer.source();
                let query = request.query();
                self.scraper.merged_for(client, &request.headers, query, move || slot.evict()).await
            }
            _ => not_found(),
        }
    }
}
