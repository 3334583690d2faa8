//! PURE. What Envoy says of itself on its admin port, and what to ask there.

pub mod admin;
pub mod process;
pub mod question;
pub mod supervisor;

use serde::Deserialize;

use crate::readiness::Failure;

/// What to ask for [`open_connections`].
pub const OPEN_CONNECTIONS: &str = "/stats?filter=%5Elistener%5C..*%5C.downstream_cx_active%24";
/// Listeners whose connections are not the application's: ours, Envoy's admin, those inside Envoy.
const NOT_THE_APPLICATIONS: [&str; 4] = ["app_health", "app_health_stats", "admin", "admin.main_thread"];

/// Envoy's state, as `/ready` and `/server_info` name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Serving.
    Live,
    /// Draining its listeners, or told to fail health checks.
    Draining,
    /// Waiting for its first clusters.
    PreInitializing,
    /// Waiting for its first listeners.
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

/// One kind of configuration that comes over xDS. Absent: Envoy has no such statistic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Updates {
    /// Updates taken so far.
    pub success: Option<u64>,
    /// Updates refused so far.
    pub rejected: Option<u64>,
}

/// The statistics that readiness needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// `cluster_manager.cds`.
    pub clusters: Updates,
    /// `listener_manager.lds`.
    pub listeners: Updates,
    /// `listener_manager.workers_started`, 0 or 1; absent: a stats matcher hides it.
    pub workers_started: Option<u64>,
}

/// What `/server_info` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `1.40.0`; absent if it is not such a word.
    pub version: Option<String>,
    /// Its state.
    pub state: ServerState,
    /// Seconds since this Envoy started, by its wall clock.
    pub uptime: i64,
}

/// A question to the admin port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminQuestion {
    /// `/ready`: walks no statistics.
    Ready,
    /// `/stats`, those of [`Stats`] alone.
    Stats,
    /// `/server_info`.
    ServerInfo,
}

/// An answer that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the answer to the question of its name")]
pub enum AdminAnswer {
    Ready(ServerState),
    Stats(Stats),
    ServerInfo(ServerInfo),
}

impl AdminQuestion {
    /// Path and query. The statistics are asked by anchored names and without `usedonly`, which would hide zeros: a statistic that is
    /// not there at all means that nothing comes over xDS.
    pub fn path(self) -> &'static str {
        match self {
            Self::Ready => "/ready",
            Self::Stats => concat!(
                "/stats?filter=%5E(cluster_manager%5C.cds%5C.update_(success%7Crejected)",
                "%7Clistener_manager%5C.(lds%5C.update_(success%7Crejected)%7Cworkers_started))%24"
            ),
            Self::ServerInfo => "/server_info",
        }
    }

    /// The longest answer that is read, in bytes.
    pub fn limit(self) -> usize {
        match self {
            Self::Ready => 4 * 1024,
            Self::Stats => 1024 * 1024,
            // 124 KB in Envoy 1.40: the node in it names every extension.
            Self::ServerInfo => 1024 * 1024,
        }
    }

    /// Understands the body of an answer, or says that it is not what Envoy says. `/ready` says its state with 503 too; the others
    /// count with 200 alone.
    pub fn parse(self, status: u16, body: &[u8]) -> Result<AdminAnswer, Failure> {
        if status != 200 && !(self == Self::Ready && status == 503) {
            return Err(Failure::BadStatus);
        }
        let body = std::str::from_utf8(body).map_err(|_| Failure::BadBody)?;
        let answer = match self {
            Self::Ready => ServerState::parse(body.trim()).map(AdminAnswer::Ready),
            Self::Stats => stats(body).map(AdminAnswer::Stats),
            Self::ServerInfo => server_info(body).map(AdminAnswer::ServerInfo),
        };
        answer.ok_or(Failure::BadBody)
    }
}

/// The application's open connections: the sum of `listener.*.downstream_cx_active` of listeners that are the user's. A worker's
/// part of a listener is in the whole already. `None` if a line is none of Envoy's, or there is no line at all.
pub fn open_connections(body: &str) -> Option<u64> {
    let mut sum = None;
    for line in body.lines() {
        let (name, value) = line.split_once(": ")?;
        let listener = name.strip_prefix("listener.")?.strip_suffix(".downstream_cx_active")?;
        let value: u64 = value.parse().ok()?;
        let is_part = listener.rsplit('.').next().is_some_and(|last| last.starts_with("worker_"));
        let is_ours = NOT_THE_APPLICATIONS.contains(&listener) || listener.starts_with("envoy_internal_");
        let counted = if is_part || is_ours { 0 } else { value };
        sum = Some(sum.unwrap_or(0) + counted);
    }
    sum
}

/// Lines `name: value`. A line that is none makes the whole no answer; unknown names are passed over.
fn stats(body: &str) -> Option<Stats> {
    let mut stats = Stats::default();
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

/// The fields that count, `{"version": "<commit>/1.40.0/Clean/RELEASE/BoringSSL", "state": "LIVE", "uptime_current_epoch": "12s", …}`;
/// the many others are passed over while reading.
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
