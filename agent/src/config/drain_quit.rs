//! Validated configuration of the commands `drain` and `quit`.

use std::time::Duration;

use crate::address::HttpUrl;
use crate::args::{DrainArgs, QuitArgs};

#[derive(Debug, Clone)]
pub struct DrainConfig {
    /// URL of the agent's local server.
    pub url: HttpUrl,
    /// Timeout of the request.
    pub timeout: Duration,
    /// How long to wait for open connections to close; zero disables the wait.
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

#[derive(Debug, Clone)]
pub struct QuitConfig {
    /// URL of the agent's local server.
    pub url: HttpUrl,
    /// How long to retry.
    pub timeout: Duration,
}

impl From<QuitArgs> for QuitConfig {
    fn from(args: QuitArgs) -> Self {
        let QuitArgs { url, timeout_seconds } = args;
        Self { url: url.0, timeout: Duration::from_secs(timeout_seconds.into()) }
    }
}
