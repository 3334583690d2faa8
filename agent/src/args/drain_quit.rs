//! Flags of `drain` and `quit`, which send requests to the running agent.

use crate::address::HttpUrl;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "If no agent listens, a message is printed and the exit code is 0, so that a preStop hook does not fail."
)]
pub struct DrainArgs {
    /// URL of the agent's local server: http://host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_DRAIN_URL", value_name = "URL", default_value = "http://127.0.0.1:15004")]
    pub url: AgentUrl,
    /// Timeout of the request to the agent
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_DRAIN_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub timeout_seconds: u32,
    /// How long to wait until the application's connections are closed
    #[arg(
        long = "waitSeconds",
        alias = "wait-seconds",
        env = "APP_HEALTH_DRAIN_WAIT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 0
    )]
    pub wait_seconds: u32,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The request is retried until the timeout, because a short Job may finish before its sidecar listens."
)]
pub struct QuitArgs {
    /// URL of the agent's local server: http://host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_QUIT_URL", value_name = "URL", default_value = "http://127.0.0.1:15004")]
    pub url: AgentUrl,
    /// How long to retry
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_QUIT_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub timeout_seconds: u32,
}

/// URL of an agent without a path, for example `http://127.0.0.1:15004` or `unix:/run/agent.sock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentUrl(pub HttpUrl);

impl std::str::FromStr for AgentUrl {
    type Err = crate::address::AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = if text.starts_with("unix:") { format!("{text}:/") } else { text.to_owned() };
        let url: HttpUrl = url.parse()?;
        if url.path == "/" { Ok(Self(url)) } else { Err(Self::Err::UnexpectedPath) }
    }
}
