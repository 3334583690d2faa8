//! The `stream` object of `GET /debug/vm-health`: the connection to the discovery server.

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

/// State of the stream to the discovery server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamStatus {
    /// Peer address, and when the stream was opened; `None` while there is no stream.
    pub(super) connected: Option<(String, Instant)>,
    /// Session of the hello message; `None` if no hello has arrived on this stream, as from istiod.
    pub(super) session: Option<u64>,
    /// Version of the last acknowledgement that this process received, and when it arrived.
    pub(super) acknowledged: Option<(String, Instant)>,
    /// Why the last stream, or the last attempt to open one, failed.
    pub(super) error: Option<String>,
}

impl StreamStatus {
    /// Returns the JSON view at `now`, with instants converted to ages.
    pub fn view(&self, now: Instant) -> StreamStatusJson {
        let millis = |then: Instant| {
            u64::try_from(now.saturating_duration_since(then).as_millis()).unwrap_or(u64::MAX)
        };
        let Self { connected, session, acknowledged, error } = self;
        StreamStatusJson {
            connected: connected.is_some(),
            peer: connected.as_ref().map(|(peer, _)| peer.clone()),
            since_ms: connected.as_ref().map(|(_, since)| millis(*since)),
            server: connected.is_some().then(|| if session.is_some() { "app-health" } else { "plain" }),
            session: *session,
            last_acknowledgement: acknowledged.as_ref().map(|(version, _)| version.clone()),
            last_acknowledgement_ago_ms: acknowledged.as_ref().map(|(_, at)| millis(*at)),
            last_error: error.clone(),
        }
    }
}

/// JSON view of [`StreamStatus`]; unknown values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamStatusJson {
    pub connected: bool,
    /// Peer address, for example `127.0.0.1:15010`.
    pub peer: Option<String>,
    /// Age of the stream in milliseconds.
    pub since_ms: Option<u64>,
    /// `app-health` once a hello message has arrived, `plain` until then.
    pub server: Option<&'static str>,
    /// Session of the hello message; 0 means that the WorkloadEntry is still pending.
    pub session: Option<u64>,
    /// Version in the form `<epoch>/<generation>`.
    pub last_acknowledgement: Option<String>,
    pub last_acknowledgement_ago_ms: Option<u64>,
    pub last_error: Option<String>,
}

impl StreamStatusJson {
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("the view holds only strings and numbers")
    }
}
