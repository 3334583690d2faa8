//! The flags of `drain` and `quit`, which ask the agent that runs.

use crate::address::HttpUrl;

/// Flags of `drain`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "If no agent listens, that is said, and the exit code is 0: a preStop hook must not fail for it."
)]
pub struct DrainArgs {
    /// The agent's local port: http://host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_DRAIN_URL", value_name = "URL", default_value = "http://127.0.0.1:15004")]
    pub url: AgentUrl,
    /// How long the agent may take to answer
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_DRAIN_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub timeout_seconds: u32,
    /// Stay until the application's connections are gone, at most so long
    #[arg(
        long = "waitSeconds",
        alias = "wait-seconds",
        env = "APP_HEALTH_DRAIN_WAIT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 0
    )]
    pub wait_seconds: u32,
}

/// Flags of `quit`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It tries until its time is over, since a quick Job may end before its sidecar listens."
)]
pub struct QuitArgs {
    /// The agent's local port: http://host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_QUIT_URL", value_name = "URL", default_value = "http://127.0.0.1:15004")]
    pub url: AgentUrl,
    /// How long to try
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

/// `http://127.0.0.1:15004` or `unix:/run/agent.sock`: an agent, without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentUrl(pub HttpUrl);

impl std::str::FromStr for AgentUrl {
    type Err = crate::address::AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = if text.starts_with("unix:") { format!("{text}:/") } else { text.to_owned() };
        let url: HttpUrl = url.parse()?;
        if url.path == "/" { Ok(Self(url)) } else { Err(Self::Err::Path) }
    }
}
