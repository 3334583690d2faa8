//! What the two forms of the filter do for the state machine.

use probe::Reason;

use crate::attributes::Attributes;
use crate::decision::Callout;
use crate::metrics::MetricsHost;

/// Envoy, as the current stream sees it. A failed call returns the reason with which the probe ends.
pub trait Host: Attributes + MetricsHost {
    /// Sets the address to which the `ORIGINAL_DST` cluster connects, and replaces all request
    /// headers. Without the address, the cluster would connect to the one that the downstream
    /// connection was made to, so a failure to set it leaves the headers as they are.
    fn forward(&mut self, destination: &str, headers: &[(&[u8], &[u8])]) -> Result<(), Reason>;

    /// Starts a callout and returns its token, which is unique among the callouts of a worker or of a
    /// stream.
    fn start_callout(&mut self, callout: &Callout<'_>) -> Result<u64, Reason>;

    /// Replaces all response headers by a status.
    fn replace_response(&mut self, status: u16) -> Result<(), Reason>;

    /// Replaces the current chunk of the response body, `size` bytes, by this many spaces.
    fn replace_chunk(&mut self, size: usize, spaces: usize) -> Result<(), Reason>;

    /// Answers the request with a status, the reason's text as body and its word as code details.
    fn send_local_reply(&mut self, status: u16, reason: Reason) -> Result<(), Reason>;

    /// Resets the downstream stream. A failure cannot be handled: the stream is gone already.
    fn reset(&mut self);

    fn log(&mut self, level: LogLevel, text: &str);

    /// Returns the time in nanoseconds of a clock that the host chooses.
    fn now(&self) -> u64;
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Info,
    Warn,
    Error,
}
