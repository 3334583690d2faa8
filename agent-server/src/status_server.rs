//! The status port, 15020, if the agent answers kubelet's probes itself: probes and hooks, the merged metrics,
//! and the readiness of the sidecar, as Istio's agent has them on this port.

use hyper::{Method, StatusCode};
use serving::http_server::{HttpRequest, Limits, Rate, Response, not_allowed, not_found, text};

use crate::local_server::{DRAIN, LocalServer, NAMES, QUIT};
use crate::readiness_server::{READY_PATH, ReadinessServer};
use probe_server::ProbeServer;
use scrape::Scraper;

const MERGED: &str = "/stats/prometheus";
/// Another path of the merged metrics, which Istio's agent has.
const METRICS: &str = "/metrics";
/// Paths of this port, as they appear in metrics; probes are `other`.
pub const PATHS: [&str; 6] = [MERGED, METRICS, READY_PATH, DRAIN, QUIT, NAMES];
/// New connections of one client: as many as the filter's listener permits requests.
const RATE: Rate = Rate { per_second: 200, burst: 400 };

#[derive(Clone)]
pub struct StatusServer {
    pub probes: ProbeServer,
    pub readiness: ReadinessServer,
    pub scraper: Scraper,
    /// What Istio's agent has on this port in addition; `None` if this agent is not in its place.
    pub istio: Option<IstioPaths>,
}

/// Paths that Istio's agent has on its status port.
#[derive(Clone)]
pub struct IstioPaths {
    /// Serves drain, quit and the DNS names, for clients of this host.
    pub local: LocalServer,
    /// True if only clients of this host may read the metrics.
    pub has_local_metrics: bool,
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
            DRAIN | QUIT | NAMES if let Some(istio) = self.istio => istio.local.answer(request).await,
            METRICS if self.istio.is_none() => not_found(),
            MERGED | METRICS
                if !request.peer.is_local()
                    && self.istio.as_ref().is_some_and(|istio| istio.has_local_metrics) =>
            {
                text(StatusCode::FORBIDDEN, "allowed from this host only\n")
            }
            MERGED | METRICS if request.method != Method::GET => not_allowed("GET"),
            MERGED | METRICS => {
                let slot = request.slot.clone();
                let client = request.peer.source();
                let query = request.query();
                self.scraper.merged_for(client, &request.headers, query, move || slot.evict()).await
            }
            _ => not_found(),
        }
    }
}
