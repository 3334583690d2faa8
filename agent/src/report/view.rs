//! What `/debug/vm-health` says of the stream.

use serde::Serialize;
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

/// The same, with ages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamView {
    /// There is one.
    pub connected: bool,
    /// `127.0.0.1:15010`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Age of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u128>,
    /// `app-health` once it has said hello, until then `plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'static str>,
    /// Of the hello; 0: the entry is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// `<epoch>/<generation>`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_acknowledgement: Option<String>,
    /// Its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_acknowledgement_ago_ms: Option<u128>,
    /// Why there was no stream the last time that there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl StreamNow {
    /// At `now`.
    pub fn view(&self, now: Instant) -> StreamView {
        let ago = |then: Instant| now.saturating_duration_since(then).as_millis();
        let is_connected = self.connected.is_some();
        StreamView {
            connected: is_connected,
            peer: self.connected.as_ref().map(|(peer, _)| peer.clone()),
            since_ms: self.connected.as_ref().map(|(_, since)| ago(*since)),
            server: is_connected.then(|| if self.session.is_some() { "app-health" } else { "plain" }),
            session: self.session,
            last_acknowledgement: self.acknowledged.as_ref().map(|(version, _)| version.clone()),
            last_acknowledgement_ago_ms: self.acknowledged.as_ref().map(|(_, at)| ago(*at)),
            last_error: self.error.clone(),
        }
    }
}
