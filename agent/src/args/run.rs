//! Flags of `run`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{
    BoolValueParser, BoolishValueParser, PossibleValuesParser, TypedValueParser as _, ValueParser,
};
use tracing::level_filters::LevelFilter;

use super::bootstrap::PROBERS_HELP;
use super::{SidecarArgs, TargetLabel, VmArgs};
use address::{HttpUrl, OrOff};
use agent_output::log::{LOG_LEVELS, LogFormat};
use readiness::Dynamic;
use readiness::listeners::DrainScope;

fn log_level() -> ValueParser {
    PossibleValuesParser::new(LOG_LEVELS).try_map(|level| level.parse::<LevelFilter>()).into()
}

/// Flags of `run`. The prober table comes from the environment variable ISTIO_KUBE_APP_PROBERS.
#[derive(Debug, clap::Args)]
#[command(after_help = PROBERS_HELP)]
pub struct RunArgs {
    #[command(flatten)]
    pub sidecar: SidecarArgs,
    /// What answers kubelet's probes. `envoy`: the filter in Envoy; `agent`: the agent itself, so that Envoy
    /// needs no filter and no probe listener, and probes have their verdicts while Envoy does not respond
    #[arg(long, env = "APP_HEALTH_PROBES", value_enum, default_value_t = Probes::Envoy)]
    pub probes: Probes,
    /// Listener for GET /healthz/ready; `[::]` accepts IPv4 and IPv6
    #[arg(long, env = "APP_HEALTH_READY_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15021")]
    pub ready_address: SocketAddr,
    /// With --local-address unix:PATH: name or number of a group whose members may use the socket, in
    /// addition to root and the agent's own user. The agent must be in this group
    #[arg(long, env = "APP_HEALTH_LOCAL_GROUP", value_name = "GROUP")]
    pub local_group: Option<String>,
    /// Your complete Envoy configuration, used as it is: nothing is rendered, and
    /// ISTIO_KUBE_APP_PROBERS is not read
    #[arg(long, env = "APP_HEALTH_ENVOY_CONFIG", value_name = "FILE")]
    pub envoy_config: Option<PathBuf>,
    /// Your part of Envoy's configuration. Envoy merges the rendered bootstrap over it and appends
    /// lists
    #[arg(long, env = "APP_HEALTH_USER_CONFIG", value_name = "FILE")]
    pub user_config: Option<PathBuf>,
    /// Path of the Envoy binary. Default: `envoy` on the PATH
    #[arg(long, env = "APP_HEALTH_ENVOY", value_name = "PATH")]
    pub envoy: Option<PathBuf>,
    /// Number of Envoy's worker threads. Default: the container's CPU limit, rounded up, otherwise
    /// 2
    #[arg(
        long,
        env = "APP_HEALTH_CONCURRENCY",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub concurrency: Option<u32>,
    /// Monitor an Envoy that an external process starts; the agent never starts, signals or
    /// restarts it
    #[arg(long, env = "APP_HEALTH_NO_ENVOY", value_parser = BoolishValueParser::new())]
    pub no_envoy: bool,
    /// Selects what follows an unexpected exit of Envoy. `never`: exit with code 70, so that kubelet or
    /// systemd restarts both; `always`: restart Envoy after
    /// a random pause of at most half a second; the maximum doubles up to 30 s; `limited`: the same,
    /// but exit with code 70 if Envoy was restarted --envoy-restart-limit times within
    /// --envoy-restart-window-seconds before, so that a crash loop is visible
    #[arg(long, env = "APP_HEALTH_ENVOY_RESTART", value_enum, default_value_t = EnvoyRestart::Never)]
    pub envoy_restart: EnvoyRestart,
    /// With --envoy-restart limited: how many restarts of Envoy are allowed within the window
    #[arg(
        long,
        env = "APP_HEALTH_ENVOY_RESTART_LIMIT",
        value_name = "N",
        default_value_t = 4,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub envoy_restart_limit: u16,
    /// With --envoy-restart limited: length of the window. A container that ran for ten minutes is
    /// restarted by kubelet without a delay
    #[arg(
        long,
        env = "APP_HEALTH_ENVOY_RESTART_WINDOW_SECONDS",
        value_name = "SECONDS",
        default_value_t = 600,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub envoy_restart_window_seconds: u32,
    /// Kill an Envoy that the agent started once neither its probe listener nor its admin port has
    /// responded for this long; --envoy-restart decides what follows. An Envoy that has not been ready
    /// yet has at least 600 s. 0 disables the check, as does --data-path off
    #[arg(long, env = "APP_HEALTH_ENVOY_HANG_SECONDS", value_name = "SECONDS", default_value_t = 60)]
    pub envoy_hang_seconds: u32,
    /// Whether clusters and listeners come over xDS. `auto`: they do if Envoy has statistics about
    /// xDS
    #[arg(long, env = "APP_HEALTH_DYNAMIC", value_enum, default_value_t = Dynamic::Auto)]
    pub dynamic: Dynamic,
    /// URL of the data-path check, which verifies that the probe listener and the filter respond;
    /// without a path it requests a probe that cannot be declared. `off` for an Envoy without the
    /// probe listener. Default: --probe-address, on loopback if it binds all addresses
    #[arg(long, env = "APP_HEALTH_DATA_PATH", value_name = "URL|off")]
    pub data_path: Option<OrOff<HttpUrl>>,
    /// Initial timeout of requests to Envoy's admin port; doubles after each timeout, up to 30
    #[arg(
        long,
        env = "APP_HEALTH_ADMIN_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u8).range(1..=30)
    )]
    pub admin_timeout_seconds: u8,
    /// Answer GET /healthz/live too, for a liveness probe of this container. Off by default,
    /// because a failing liveness probe restarts the container
    #[arg(long, env = "APP_HEALTH_LIVE", value_parser = BoolishValueParser::new())]
    pub live: bool,
    /// With --live: fail once the admin port has not responded for this long; 0 disables the check
    #[arg(long, env = "APP_HEALTH_LIVE_ADMIN_SECONDS", value_name = "SECONDS", default_value_t = 0)]
    pub live_admin_seconds: u32,
    /// Minimum time that Envoy serves after SIGTERM, while clients stop sending new requests. Also
    /// MINIMUM_DRAIN_DURATION, such as 5s. Default: 5
    #[arg(long, env = "APP_HEALTH_DRAIN_SECONDS", value_name = "SECONDS")]
    pub drain_seconds: Option<u32>,
    /// The drain ends after this time even if connections are still open; with 3 s for Envoy's
    /// shutdown it must fit in the Pod's terminationGracePeriodSeconds
    #[arg(
        long,
        env = "APP_HEALTH_DRAIN_DEADLINE_SECONDS",
        value_name = "SECONDS",
        default_value_t = 25,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub drain_deadline_seconds: u32,
    /// Which listeners are drained, and whose connections the drain waits for. `inbound`: all but those
    /// with traffic_direction OUTBOUND, so that the application can send requests until the end
    #[arg(long, env = "APP_HEALTH_DRAIN_SCOPE", value_enum, default_value_t = DrainScope::Inbound)]
    pub drain_scope: DrainScope,
    /// Keep /healthz/ready at 200 during a drain
    #[arg(long, env = "APP_HEALTH_DRAIN_KEEPS_READY", value_parser = BoolishValueParser::new())]
    pub drain_keeps_ready: bool,
    /// Whether the merged metrics include Envoy's. Also PILOT_AGENT_MERGE_ENVOY_STATS. Default:
    /// true
    #[arg(long, env = "APP_HEALTH_METRICS_ENVOY", value_parser = BoolValueParser::new())]
    pub metrics_envoy: Option<bool>,
    /// Metrics endpoint of an application on this machine, included in the merged metrics;
    /// repeatable, and the environment variable takes a comma-separated list. Also
    /// ISTIO_PROMETHEUS_ANNOTATIONS. Default: none
    #[arg(long, env = "APP_HEALTH_METRICS_TARGET", value_name = "PORT[/PATH]", value_delimiter = ',')]
    pub metrics_target: Vec<String>,
    /// Whether the series of metrics targets get the label `metrics_target` with the target's port:
    /// `auto` adds it if there are several targets, because Prometheus keeps only one of equal series
    #[arg(long, env = "APP_HEALTH_METRICS_TARGET_LABEL", value_enum, default_value_t = TargetLabel::Auto)]
    pub metrics_target_label: TargetLabel,
    /// Minimum severity of log lines, which go to stderr; PUT /debug/log?level=debug on the local
    /// port changes it at runtime
    #[arg(long, env = "APP_HEALTH_LOG_LEVEL", value_parser = log_level(), default_value = "info")]
    pub log_level: LevelFilter,
    /// Format of log lines; with `json` every line on stderr is a JSON object, also those of Envoy and the
    /// final error
    #[arg(long, env = "APP_HEALTH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    #[command(flatten)]
    pub vm: VmArgs,
    /// Additional flags for Envoy, such as --log-level debug; the flags that the agent sets itself
    /// are rejected
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// What answers kubelet's probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Probes {
    /// The filter in Envoy.
    Envoy,
    /// The agent.
    Agent,
}

/// Selects what follows an unexpected exit of Envoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvoyRestart {
    /// The agent exits too.
    Never,
    /// The agent starts Envoy again.
    Always,
    /// The agent starts Envoy again, but not more often than a limit.
    Limited,
}
