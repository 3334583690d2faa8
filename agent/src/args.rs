//! The command line. Every flag has a corresponding environment variable, `APP_HEALTH_` followed by
//! the flag in upper snake case; the flag takes precedence. No variable ends in `_PORT` or contains
//! `_SERVICE_`, because kubelet sets such variables for a Service named `app-health`: the variable
//! of a flag that ends in `-port` is in the plural, and `SERVICE` is joined with the next word.

mod bootstrap;
#[cfg(feature = "vm")]
mod copy;
mod drain_quit;
#[cfg(not(feature = "vm"))]
mod pod;
#[cfg(feature = "vm")]
mod proxy;
#[cfg(feature = "vm")]
mod request;
mod run;
mod target_label;
mod values;
mod version;
#[cfg(feature = "vm")]
mod vm;
mod wait;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use bootstrap::{BootstrapArgs, SidecarArgs, SourceBind};
#[cfg(feature = "vm")]
pub use copy::CopyArgs;
pub use drain_quit::{DrainArgs, QuitArgs, UndrainArgs};
#[cfg(not(feature = "vm"))]
pub use pod::VmArgs;
#[cfg(feature = "vm")]
pub use proxy::{Fallback, ProxyArgs};
#[cfg(feature = "vm")]
pub use request::RequestArgs;
pub use run::{EnvoyRestart, Probes, RunArgs};
pub use target_label::TargetLabel;
pub use values::go_duration;
#[cfg(feature = "vm")]
pub use vm::{DiscoveryArgs, HealthArgs, OnOff, VmArgs, Xds};
pub use wait::{OnTimeout, WaitArgs};

#[derive(Debug, Parser)]
#[command(
    name = "app-health-agent",
    version,
    long_version = version::LONG.as_str(),
    about = "Runs next to Envoy: starts it with a bootstrap for kubelet's probes, reports its readiness, delays applications \
             until it is ready, drains it, and merges its metrics with the application's.",
    after_help = "Typical use:\n  \
                  app-health-agent run                        start Envoy; its readiness is at\n                                              \
                  http://localhost:15021/healthz/ready\n  \
                  app-health-agent wait -- ./application      start the application once Envoy is ready\n  \
                  app-health-agent drain                      in a preStop hook: Envoy accepts no new connections\n  \
                  app-health-agent bootstrap > envoy.json     for an Envoy that an external process starts; then\n  \
                  app-health-agent run --no-envoy --admin unix:/var/run/app-health/admin.sock"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start Envoy, monitor it, answer GET /healthz/ready with 200, or with 503 and the reasons,
    /// and drain it on SIGTERM
    Run(Box<RunArgs>),
    /// Print the Envoy bootstrap that `run` would use, as JSON with sorted keys; the output is
    /// deterministic
    Bootstrap(Box<BootstrapArgs>),
    /// Wait until the sidecar is ready, then exit or execute a command: wait -- cmd args
    Wait(WaitArgs),
    /// Request the running agent to drain Envoy; for a preStop hook
    Drain(DrainArgs),
    /// Request the running agent to reverse a drain, for a machine that stays in use
    Undrain(UndrainArgs),
    /// Request the running agent to exit, together with Envoy; for a Job that has finished its work
    Quit(QuitArgs),
    /// Run in the place of Istio's agent, in the container istio-proxy: takes the arguments of
    /// `pilot-agent proxy`, and executes that agent for what only it supports
    #[cfg(feature = "vm")]
    #[command(disable_help_flag = true)]
    Proxy(ProxyArgs),
    /// Send a request to a port of this machine, as `pilot-agent request` does, and print the response
    #[cfg(feature = "vm")]
    Request(RequestArgs),
    /// Copy this program into a directory, for an init container whose image has no `cp`
    #[cfg(feature = "vm")]
    Copy(CopyArgs),
    /// Execute a program that is terminated when its parent process exits; `run` starts Envoy this
    /// way
    #[command(hide = true)]
    Launch {
        /// Process ID of the parent
        parent: i32,
        /// File that records the process
        record: Option<PathBuf>,
        /// Program and arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
}

#[cfg(test)]
mod tests;
