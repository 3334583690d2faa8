//! The flags of `run`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{BoolValueParser, BoolishValueParser};

use super::bootstrap::PROBERS_HELP;
use super::{DiscoveryArgs, HealthArgs, SidecarArgs};
use crate::address::{HttpUrl, OrOff};

/// Flags of `run`. The prober table comes from the environment: ISTIO_KUBE_APP_PROBERS.
#[derive(Debug, clap::Args)]
#[command(after_help = PROBERS_HELP)]
pub struct RunArgs {
    /// What the bootstrap is made of.
    #[command(flatten)]
    pub sidecar: SidecarArgs,
    /// Where GET /healthz/ready is answered; `[::]` is IPv4 and IPv6
    #[arg(long, env = "APP_HEALTH_READY_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15021")]
    pub ready_address: SocketAddr,
    /// Your whole Envoy configuration, used as it is: nothing is rendered, and ISTIO_KUBE_APP_PROBERS is not read
    #[arg(long, env = "APP_HEALTH_ENVOY_CONFIG", value_name = "FILE")]
    pub envoy_config: Option<PathBuf>,
    /// Your part of Envoy's configuration; Envoy merges ours over it: lists append
    #[arg(long, env = "APP_HEALTH_USER_CONFIG", value_name = "FILE")]
    pub user_config: Option<PathBuf>,
    /// Envoy's binary. Default: `envoy` on the PATH
    #[arg(long, env = "APP_HEALTH_ENVOY", value_name = "PATH")]
    pub envoy: Option<PathBuf>,
    /// Envoy's worker threads. Default: the container's CPU limit, rounded up, else 2
    #[arg(
        long,
        env = "APP_HEALTH_CONCURRENCY",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub concurrency: Option<u32>,
    /// Envoy is started by somebody else: watch it, never start, signal or restart it
    #[arg(long, env = "APP_HEALTH_NO_ENVOY", value_parser = BoolishValueParser::new())]
    pub no_envoy: bool,
    /// When Envoy ends unasked: `never`: end with 70, so that kubelet or systemd restarts both, for all to see; `always`: start it
    /// again, after half a second that doubles to 30 s
    #[arg(long, env = "APP_HEALTH_ENVOY_RESTART", value_enum, default_value_t = EnvoyRestart::Never)]
    pub envoy_restart: EnvoyRestart,
    /// Do clusters and listeners come over xDS? `auto`: they do if Envoy has statistics about it
    #[arg(long, env = "APP_HEALTH_DYNAMIC", value_enum, default_value_t = Dynamic::Auto)]
    pub dynamic: Dynamic,
    /// Where the probe listener is asked whether it answers, listener and filter alike; without a path, for a probe that cannot be
    /// declared. `off` for an Envoy without our listener. Default: --probe-address, on loopback if it takes all addresses
    #[arg(long, env = "APP_HEALTH_DATA_PATH", value_name = "URL|off")]
    pub data_path: Option<OrOff<HttpUrl>>,
    /// First deadline of a question to the admin port; doubles after each timeout, at most 30
    #[arg(
        long,
        env = "APP_HEALTH_ADMIN_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u8).range(1..=30)
    )]
    pub admin_timeout_seconds: u8,
    /// Answer GET /healthz/live too, for a liveness probe of this container. Off, since a mistake there kills
    #[arg(long, env = "APP_HEALTH_LIVE", value_parser = BoolishValueParser::new())]
    pub live: bool,
    /// With --live: not alive once the admin port has been silent for so long; 0: that never counts
    #[arg(long, env = "APP_HEALTH_LIVE_ADMIN_SECONDS", value_name = "SECONDS", default_value_t = 0)]
    pub live_admin_seconds: u32,
    /// After SIGTERM Envoy serves at least so long, while others stop sending. Also MINIMUM_DRAIN_DURATION, such as 5s. Default: 5
    #[arg(long, env = "APP_HEALTH_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<u32>,
    /// The drain is over after so long, whatever is still open; with 3 s for Envoy's end it has to fit in the Pod's
    /// terminationGracePeriodSeconds
    #[arg(
        long,
        env = "APP_HEALTH_DRAIN_DEADLINE_SECONDS",
        value_name = "SECONDS",
        default_value_t = 25,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub drain_deadline_seconds: u32,
    /// Which listeners are drained: with `inbound` the application can call others until the end
    #[arg(long, env = "APP_HEALTH_DRAIN_SCOPE", value_enum, default_value_t = DrainScope::Inbound)]
    pub drain_scope: DrainScope,
    /// A drain leaves /healthz/ready at 200
    #[arg(long, env = "APP_HEALTH_DRAIN_KEEPS_READY", value_parser = BoolishValueParser::new())]
    pub drain_keeps_ready: bool,
    /// Are Envoy's metrics part of the merged ones? Also PILOT_AGENT_MERGE_ENVOY_STATS. Default: true
    #[arg(long, env = "APP_HEALTH_METRICS_ENVOY", value_parser = BoolValueParser::new())]
    pub metrics_envoy: Option<bool>,
    /// An application's metrics on this machine, part of the merged ones; repeatable, and the twin is a list with commas. Also
    /// ISTIO_PROMETHEUS_ANNOTATIONS. Default: none
    #[arg(long, env = "APP_HEALTH_METRICS_TARGET", value_name = "PORT[/PATH]", value_delimiter = ',')]
    pub metrics_target: Vec<String>,
    /// Health of a workload on a virtual machine.
    #[command(flatten)]
    pub health: HealthArgs,
    /// To whom it is reported.
    #[command(flatten)]
    pub discovery: DiscoveryArgs,
    /// How much is logged, to stderr; PUT /debug/log?level=debug on the local port changes it
    #[arg(long, env = "APP_HEALTH_LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,
    /// How it is written
    #[arg(long, env = "APP_HEALTH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// More flags for Envoy, such as --log-level debug; not those that the agent sets
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// What becomes of an Envoy that ends unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvoyRestart {
    /// The agent ends too.
    Never,
    /// It is started again.
    Always,
}

/// Which listeners a drain closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrainScope {
    /// Those with traffic_direction INBOUND.
    Inbound,
    /// All.
    All,
}

/// Do clusters and listeners come over xDS?
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dynamic {
    /// They do if Envoy has the statistics of it.
    Auto,
    /// They do, whatever the statistics say.
    On,
    /// They stand in Envoy's file.
    Off,
}

/// The least severe lines that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words speak for themselves")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
