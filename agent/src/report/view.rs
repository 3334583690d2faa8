//! What `/debug/vm-health` says of the stream.

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

/// The stream of this moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamNow {
    /// The other end, and since when; absent: there is none.
    pub(super) connected: Option<(String, Instant)>,
    /// Of our server; absent: no hello on this stream, as from a plain server.
    pub(super) session: Option<u64>,
    /// The last acknowledgement in this process, and when it came.
    pub(super) acknowledged: Option<(String, Instant)>,
    /// Why there was no stream the last time that there was none.
    pub(super) error: Option<String>,
}

impl StreamNow {
    /// At `now`, with ages.
    pub fn view(&self, now: Instant) -> StreamView {
        let millis = |then: Instant| {
            u64::try_from(now.saturating_duration_since(then).as_millis()).unwrap_or(u64::MAX)
        };
        let Self { connected, session, acknowledged, error } = self;
        StreamView {
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

/// The same as JSON has it; what is not known is `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamView {
    /// There is one.
    pub connected: bool,
    /// `127.0.0.1:15010`
    pub peer: Option<String>,
    /// Age of the stream.
    pub since_ms: Option<u64>,
    /// `app-health` once it has said hello, until then `plain`.
    pub server: Option<&'static str>,
    /// Of the hello; 0: the entry is pending.
    pub session: Option<u64>,
    /// `<epoch>/<generation>`
    pub last_acknowledgement: Option<String>,
    /// Its age.
    pub last_acknowledgement_ago_ms: Option<u64>,
    /// Why there was no stream the last time that there was none.
    pub last_error: Option<String>,
}

impl StreamView {
    /// For `GET /debug/vm-health`.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("texts and numbers alone")
    }
}
