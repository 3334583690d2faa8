//! The `stream` object of `GET /debug/vm-health`: the connection to the discovery server.

use serde_json::{Value, json};
use tokio::time::Instant;

/// State of the stream to the discovery server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamStatus {
    /// Peer address, and when the stream was opened; `None` while there is no stream.
    pub(super) connected: Option<(String, Instant)>,
    /// Session of the hello message, 0 while the WorkloadEntry is pending; `None` if no hello has
    /// arrived on this stream, as from istiod.
    pub(super) session: Option<u64>,
    /// Version (`<epoch>/<generation>`) of the last acknowledgement that this process received, and
    /// when it arrived.
    pub(super) acknowledged: Option<(String, Instant)>,
    /// True if there is no probe, and the server has sent none: it serves the workload whatever its
    /// health is.
    pub(super) nothing_to_report: bool,
    /// Why the last stream, or the last attempt to open one, failed.
    pub(super) error: Option<String>,
}

impl StreamStatus {
    /// Returns the JSON view at `now`. Times are ages, and unknown values are `null`.
    pub fn to_json(&self, now: Instant) -> Value {
        let age = |then: Instant| {
            u64::try_from(now.saturating_duration_since(then).as_millis()).unwrap_or(u64::MAX)
        };
        let Self { connected, session, acknowledged, nothing_to_report, error } = self;
        let server = if session.is_some() { "app-health" } else { "istio" };
        json!({
            "connected": connected.is_some(),
            "peer": connected.as_ref().map(|(peer, _)| peer),
            "sinceMs": connected.as_ref().map(|(_, since)| age(*since)),
            "server": connected.is_some().then_some(server),
            "session": session,
            "lastAcknowledgement": acknowledged.as_ref().map(|(version, _)| version),
            "lastAcknowledgementAgoMs": acknowledged.as_ref().map(|(_, at)| age(*at)),
            "nothingToReport": nothing_to_report,
            "lastError": error,
        })
    }
}
