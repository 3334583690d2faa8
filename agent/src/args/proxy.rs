//! Flags of `proxy`.

use std::path::PathBuf;

use clap::ValueEnum;

/// Flags of `proxy`, which precede those of `pilot-agent proxy`.
#[derive(Debug, clap::Args)]
pub struct ProxyArgs {
    /// Istio's agent, which is executed for what only it supports. Default: the first `pilot-agent` on the
    /// PATH that is another program than this one
    #[arg(long, env = "APP_HEALTH_STOCK_AGENT", value_name = "PATH")]
    pub stock_agent: Option<PathBuf>,
    /// What happens if a setting is supported by Istio's agent only. `on`: that agent is executed; `off`: exit
    /// with code 64
    #[arg(long, env = "APP_HEALTH_FALLBACK", value_enum, default_value_t = Fallback::On)]
    pub fallback: Fallback,
    /// The arguments of `pilot-agent proxy`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub words: Vec<String>,
}

/// Whether another agent may run in our place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fallback {
    /// It may.
    On,
    /// It may not.
    Off,
}
