//! The command line. Every flag has an environment twin, `APP_HEALTH_` and the flag in upper snake case; a flag beats its twin.
//! No twin ends in `_PORT` or holds `_SERVICE_`, since kubelet sets such names for a Service that is called `app-health`: the twin of
//! a flag that ends in `-port` is in the plural, and `SERVICE` runs into the next word.

mod bootstrap;
mod discovery;
mod health;
mod local;
mod run;
mod wait;

use clap::{Parser, Subcommand};

pub use bootstrap::{BootstrapArgs, SidecarArgs, SourceBind};
pub use discovery::{DiscoveryArgs, Xds};
pub use health::{HealthArgs, OnOff};
pub use local::{DrainArgs, QuitArgs};
pub use run::{DrainScope, Dynamic, EnvoyRestart, LogFormat, LogLevel, RunArgs};
pub use wait::{OnTimeout, WaitArgs};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "app-health-agent",
    version,
    about = "Runs beside Envoy: starts it with a bootstrap for kubelet's probes, says whether it is ready and why not, holds \
             applications back until then, drains it, and merges its metrics with the application's.",
    after_help = "Typical use:\n  \
        app-health-agent run                        Envoy with kubelet's probes, and its readiness on\n                                              \
        http://localhost:15021/healthz/ready\n  \
        app-health-agent wait -- ./application      the application, once Envoy is ready\n  \
        app-health-agent drain                      a preStop hook: Envoy takes no new connections\n  \
        app-health-agent bootstrap > envoy.json     for an Envoy that somebody else starts; then\n  \
        app-health-agent run --no-envoy --admin unix:/var/run/app-health/admin.sock"
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start Envoy, watch it, answer GET /healthz/ready (200, or 503 with the reasons), drain it on SIGTERM
    Run(Box<RunArgs>),
    /// Print the Envoy bootstrap that `run` would use: JSON with sorted keys, the same for the same input
    Bootstrap(Box<BootstrapArgs>),
    /// Return when the sidecar is ready, or become a command then: wait -- cmd args
    Wait(WaitArgs),
    /// Tell the running agent to drain Envoy; for a preStop hook
    Drain(DrainArgs),
    /// Tell the running agent to end, and Envoy with it; for a Job whose work is done
    Quit(QuitArgs),
    /// Print the completion for a shell; for bash: source <(app-health-agent completion bash)
    Completion {
        /// Which shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Become a program that ends when its parent does; how `run` starts Envoy
    #[command(hide = true)]
    Launch {
        /// The parent's number
        parent: i32,
        /// File and arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Print docs/agent.md
    #[command(hide = true)]
    Reference,
}

#[cfg(test)]
mod tests;
