//! One readiness request of `wait` and the interpretation of its response.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use address::HttpUrl;
use http_client::HttpResponse;

const BODY_LIMIT: usize = 4 * 1024;
const REASON_LIMIT: usize = 1024;
/// Start of the line that says that Envoy uses a stored configuration.
const STORED: &str = "configuration from cache";
/// Time reserved for a long-poll response to arrive before the deadline.
pub(super) const RESPONSE_MARGIN: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    Ready {
        /// What the sidecar adds, for example that Envoy uses a stored configuration.
        note: Option<String>,
    },
    /// Status 503 with the reasons in the body.
    NotReady {
        reason: String,
        /// True if the server held the request for the requested time, so that the next one may
        /// follow immediately.
        held: bool,
    },
    /// A status that is not covered by another variant.
    UnexpectedStatus(u16),
    /// Status 400 or 404 for a request with the parameter `wait`, which the server may not support.
    WaitParameterRejected(u16),
    /// A connection was established, but no complete response arrived in time.
    TimedOut(Duration),
    Closed,
    NotHttp,
    Refused,
    UnknownName,
    NotResolved,
}

impl Attempt {
    /// Returns why the sidecar is not ready; `None` means that it is ready.
    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Self::Ready { .. } => None,
            Self::NotReady { reason, .. } => Some(reason.clone()),
            Attempt::UnexpectedStatus(status) | Attempt::WaitParameterRejected(status) => {
                Some(format!("HTTP status {status}"))
            }
            Attempt::TimedOut(timeout) => Some(format!("no response in {}ms", timeout.as_millis())),
            Self::Closed | Self::Refused => Some("connection refused".to_owned()),
            Self::NotHttp => Some("no HTTP response".to_owned()),
            Self::UnknownName => Some("name unknown".to_owned()),
            Self::NotResolved => Some("name not resolved".to_owned()),
        }
    }

    /// Returns what a ready sidecar adds.
    pub(super) fn note(&self) -> Option<&str> {
        match self {
            Self::Ready { note } => note.as_deref(),
            _ => None,
        }
    }

    /// Returns true if a connection was accepted, which means that there is a sidecar.
    pub(super) fn accepted(&self) -> bool {
        !matches!(self, Self::Refused | Self::UnknownName | Self::NotResolved)
    }
}

/// Polls one URL, with the parameter `wait` as long as the server seems to support it.
pub(super) struct Attempts<'a> {
    url: &'a HttpUrl,
    supports_wait: bool,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(url: &'a HttpUrl) -> Self {
        Self { url, supports_wait: true }
    }

    /// Takes at most `timeout`, including the name lookup.
    pub(super) async fn next(&mut self, timeout: Duration) -> Attempt {
        let started = Instant::now();
        let deadline = started + timeout;
        let found = match timeout_at(deadline, http_client::resolve(&self.url.endpoint)).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => return Attempt::UnknownName,
            Err(_) => return Attempt::NotResolved,
        };
        // A connection that is not accepted in time means that no sidecar listens yet.
        let Ok(Ok(connection)) = timeout_at(deadline, found.dial()).await else { return Attempt::Refused };
        let hold = self.hold(timeout);
        let path = self.path(hold);
        match timeout_at(deadline, connection.get(&self.url.authority, &path, BODY_LIMIT)).await {
            Ok(Ok(response)) => self.classify(&response, hold, started.elapsed()),
            Ok(Err(error)) if error.is_protocol_error() => Attempt::NotHttp,
            Ok(Err(_)) => Attempt::Closed,
            Err(_) => Attempt::TimedOut(timeout),
        }
    }

    /// Returns how long the server is asked to hold the request; `None` if `timeout` is too short
    /// for that.
    fn hold(&self, timeout: Duration) -> Option<Duration> {
        let millis = timeout.saturating_sub(RESPONSE_MARGIN).as_millis().min(30_000);
        let hold = Duration::from_millis(u64::try_from(millis).expect("at most 30,000"));
        (self.supports_wait && !hold.is_zero()).then_some(hold)
    }

    fn path(&self, hold: Option<Duration>) -> String {
        let path = &self.url.path;
        match hold {
            Some(hold) => {
                let separator = if path.contains('?') { '&' } else { '?' };
                format!("{path}{separator}wait={}", hold.as_millis())
            }
            None => path.clone(),
        }
    }

    fn classify(&mut self, response: &HttpResponse, hold: Option<Duration>, took: Duration) -> Attempt {
        match response.status {
            200 => Attempt::Ready { note: note(&response.body) },
            503 => Attempt::NotReady {
                reason: reason(&response.body),
                held: hold.is_some_and(|hold| took >= hold),
            },
            status @ (400 | 404) if hold.is_some() => {
                self.supports_wait = false;
                Attempt::WaitParameterRejected(status)
            }
            status => Attempt::UnexpectedStatus(status),
        }
    }
}

/// Returns the line about a stored configuration.
fn note(body: &[u8]) -> Option<String> {
    let line = body.split(|byte| *byte == b'\n').find(|line| line.starts_with(STORED.as_bytes()))?;
    Some(reason(line))
}

/// Joins the lines of the body and replaces control characters, which a terminal could interpret.
fn reason(body: &[u8]) -> String {
    let body = &body[..body.len().min(REASON_LIMIT)];
    let printable = |byte: &u8| if (0x20..=0x7e).contains(byte) { char::from(*byte) } else { '?' };
    let lines = body.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<String> =
        lines.filter(|line| !line.is_empty()).map(|line| line.iter().map(printable).collect()).collect();
    if lines.is_empty() { "HTTP status 503".to_owned() } else { lines.join("; ") }
}

#[cfg(test)]
mod tests;
