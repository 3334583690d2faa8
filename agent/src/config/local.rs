//! From the arguments of `drain` and `quit` to checked values.

use std::time::Duration;

use crate::address::HttpUrl;
use crate::args::{DrainArgs, QuitArgs};

/// What `drain` does.
#[derive(Debug, Clone)]
pub struct DrainConfig {
    /// The agent's local port.
    pub url: HttpUrl,
    /// Of the question.
    pub timeout: Duration,
    /// How long to stay at most; zero: not at all.
    pub wait: Duration,
}

impl From<DrainArgs> for DrainConfig {
    fn from(args: DrainArgs) -> Self {
        let DrainArgs { url, timeout_seconds, wait_seconds } = args;
        Self {
            url: url.0,
            timeout: Duration::from_secs(timeout_seconds.into()),
            wait: Duration::from_secs(wait_seconds.into()),
        }
    }
}

/// What `quit` does.
#[derive(Debug, Clone)]
pub struct QuitConfig {
    /// The agent's local port.
    pub url: HttpUrl,
    /// How long to try.
    pub timeout: Duration,
}

impl From<QuitArgs> for QuitConfig {
    fn from(args: QuitArgs) -> Self {
        let QuitArgs { url, timeout_seconds } = args;
        Self { url: url.0, timeout: Duration::from_secs(timeout_seconds.into()) }
    }
}
