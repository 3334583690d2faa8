//! Requests to Envoy's admin interface and the parsing of their responses.

use serde::Deserialize;

use address::RequestFailure;

/// Path and query whose response [`super::listeners::DrainPlan::open_connections`] parses.
pub const OPEN_CONNECTIONS: &str = "/stats?filter=%5Elistener%5C..*%5C.downstream_cx_active%24";

/// Envoy's server state, as `/ready` and `/server_info` report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    Live,
    /// Envoy drains its listeners, or was told to fail health checks.
    Draining,
    /// Envoy waits for its initial clusters.
    PreInitializing,
    /// Envoy waits for its initial listeners.
    Initializing,
}

impl ServerState {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "LIVE" => Some(Self::Live),
            "DRAINING" => Some(Self::Draining),
            "PRE_INITIALIZING" => Some(Self::PreInitializing),
            "INITIALIZING" => Some(Self::Initializing),
            _ => None,
        }
    }
}

/// Update counters of one xDS resource type. `None` means that Envoy has no such statistic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpdateCounters {
    pub success: Option<u64>,
    pub rejected: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadinessStats {
    pub clusters: UpdateCounters,
    pub listeners: UpdateCounters,
    /// Value of `listener_manager.workers_started`, 0 or 1; `None` if a stats matcher excludes it.
    pub workers_started: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Version such as `1.40.0`; `None` if it has another form.
    pub version: Option<String>,
    pub state: ServerState,
    /// Seconds since this Envoy started, by its wall clock.
    pub uptime: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminRequest {
    /// `/ready`, which evaluates no statistics.
    Ready,
    /// `/stats`, limited to the statistics in [`ReadinessStats`].
    Stats,
    ServerInfo,
    /// `/ready` of a child process whose `/server_info` is known: its version cannot change, and the agent
    /// observes its exit.
    State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminResponse {
    /// Response to [`AdminRequest::Ready`] and [`AdminRequest::State`].
    State(ServerState),
    Stats(ReadinessStats),
    ServerInfo(ServerInfo),
}

/// Response of the probe listener to a probe that is not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPathResponse {
    pub status: u16,
    /// True if the body contains the filter's reason word for an unknown probe.
    pub unknown_probe: bool,
}

impl AdminRequest {
    /// Returns path and query. The statistics are selected by anchored names and without
    /// `usedonly`, which would hide zeros: a missing statistic means that nothing is configured
    /// over xDS.
    pub fn path(self) -> &'static str {
        match self {
            Self::Ready | Self::State => "/ready",
            Self::Stats => concat!(
                "/stats?filter=%5E(cluster_manager%5C.cds%5C.update_(success%7Crejected)",
                "%7Clistener_manager%5C.(lds%5C.update_(success%7Crejected)%7Cworkers_started))%24"
            ),
            Self::ServerInfo => "/server_info",
        }
    }

    pub fn limit(self) -> usize {
        match self {
            Self::Ready | Self::State => 4 * 1024,
            Self::Stats => 1024 * 1024,
            // The response has 126 KB in Envoy 1.40, because its node lists every extension.
            Self::ServerInfo => 1024 * 1024,
        }
    }

    /// Parses a response, or fails if it does not come from Envoy. `/ready` reports its state with
    /// status 503 too; the other requests accept only 200.
    pub fn parse(self, status: u16, body: &[u8]) -> Result<AdminResponse, RequestFailure> {
        let reports_state = matches!(self, Self::Ready | Self::State);
        if status != 200 && !(reports_state && status == 503) {
            return Err(RequestFailure::BadStatus);
        }
        let body = std::str::from_utf8(body).map_err(|_| RequestFailure::BadBody)?;
        let response = match self {
            Self::Ready | Self::State => ServerState::parse(body.trim()).map(AdminResponse::State),
            Self::Stats => stats(body).map(AdminResponse::Stats),
            Self::ServerInfo => server_info(body).map(AdminResponse::ServerInfo),
        };
        response.ok_or(RequestFailure::BadBody)
    }
}

/// Parses lines of the form `name: value`. A malformed line makes the response invalid; unknown
/// names are ignored.
fn stats(body: &str) -> Option<ReadinessStats> {
    let mut stats = ReadinessStats::default();
    for line in body.lines() {
        let (name, value) = line.split_once(": ")?;
        let value = Some(value.parse().ok()?);
        match name {
            "cluster_manager.cds.update_success" => stats.clusters.success = value,
            "cluster_manager.cds.update_rejected" => stats.clusters.rejected = value,
            "listener_manager.lds.update_success" => stats.listeners.success = value,
            "listener_manager.lds.update_rejected" => stats.listeners.rejected = value,
            "listener_manager.workers_started" => stats.workers_started = value,
            _ => {}
        }
    }
    Some(stats)
}

/// Fields that are used of `{"version": "<commit>/1.40.0/Clean/RELEASE/BoringSSL", "state": "LIVE",
/// "uptime_current_epoch": "12s", …}`; the parser skips all others.
#[derive(Deserialize)]
struct RawServerInfo {
    version: String,
    state: String,
    uptime_current_epoch: String,
}

fn server_info(body: &str) -> Option<ServerInfo> {
    let info: RawServerInfo = serde_json::from_str(body).ok()?;
    let is_version = |word: &&str| {
        (1..=32).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
    };
    Some(ServerInfo {
        version: info.version.split('/').nth(1).filter(is_version).map(str::to_owned),
        state: ServerState::parse(&info.state)?,
        uptime: info.uptime_current_epoch.strip_suffix('s')?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;
