//! Flags of `drain`, `undrain` and `quit`, which send requests to the running agent.

use std::time::Duration;

use clap::builder::TypedValueParser as _;

use super::values::seconds;
use address::{AddressError, HttpUrl};

/// Default of `--local-address` as a URL.
const DEFAULT_URL: &str = "http://127.0.0.1:15004";

#[derive(Debug, clap::Args)]
#[command(
    after_help = "If no agent listens, a message is printed and the exit code is 0, so that a preStop hook does not fail."
)]
pub struct DrainArgs {
    /// URL of the agent's local server: http://host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_DRAIN_URL", value_name = "URL", default_value = DEFAULT_URL, value_parser = agent_url)]
    pub url: HttpUrl,
    /// Timeout of the request to the agent
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_DRAIN_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value = "5",
        value_parser = clap::value_parser!(u32).range(1..).map(seconds)
    )]
    pub timeout: Duration,
    /// How long to wait until the application's connections are closed
    #[arg(
        long = "waitSeconds",
        alias = "wait-seconds",
        env = "APP_HEALTH_DRAIN_WAIT_SECONDS",
        value_name = "SECONDS",
        default_value = "0",
        value_parser = clap::value_parser!(u32).map(seconds)
    )]
    pub wait: Duration,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Envoy cannot reverse a drain: the agent replaces an Envoy that it started, and an external one must be restarted. \
                  A drain by SIGTERM cannot be reversed."
)]
pub struct UndrainArgs {
    /// URL of the agent's local server: http://host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_UNDRAIN_URL", value_name = "URL", default_value = DEFAULT_URL, value_parser = agent_url)]
    pub url: HttpUrl,
    /// Timeout of the request to the agent
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_UNDRAIN_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value = "5",
        value_parser = clap::value_parser!(u32).range(1..).map(seconds)
    )]
    pub timeout: Duration,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The request is retried until the timeout, because a short Job may finish before its sidecar listens."
)]
pub struct QuitArgs {
    /// URL of the agent's local server: http://host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_QUIT_URL", value_name = "URL", default_value = DEFAULT_URL, value_parser = agent_url)]
    pub url: HttpUrl,
    /// How long to retry
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_QUIT_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value = "10",
        value_parser = clap::value_parser!(u32).range(1..).map(seconds)
    )]
    pub timeout: Duration,
}

/// Parses the URL of an agent, without a path, for example `http://127.0.0.1:15004` or
/// `unix:/run/agent.sock`.
fn agent_url(text: &str) -> Result<HttpUrl, AddressError> {
    let url = if text.starts_with("unix:") { format!("{text}:/") } else { text.to_owned() };
    let url: HttpUrl = url.parse()?;
    if url.path == "/" { Ok(url) } else { Err(AddressError::UnexpectedPath) }
}
