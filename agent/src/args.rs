//! The command line. Every flag has an environment twin, `APP_HEALTH_` and the flag in upper snake case; a flag beats its twin.
//! No twin ends in `_PORT` or holds `_SERVICE_`, since kubelet sets such names for a Service that is called `app-health`: the twin of
//! a flag that ends in `-port` is in the plural.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, FalseyValueParser};
use clap::{Parser, Subcommand, ValueEnum};

use crate::address::{Cidr, HttpUrl, LocalAddress, OrOff};
use crate::envoy_version::EnvoyVersion;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "app-health-agent",
    version,
    about = "Runs beside Envoy: prints its bootstrap, says whether it is ready, holds applications back until it is.",
    after_help = "Typical use:\n  \
        app-health-agent bootstrap --output envoy.json && envoy -c envoy.json   Envoy, set up for kubelet's probes\n  \
        app-health-agent run --no-envoy --admin unix:/var/run/app-health/admin.sock\n                                          \
        its readiness, on http://localhost:15021/healthz/ready\n  \
        app-health-agent wait -- ./application                                 the application, once Envoy is ready"
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch an Envoy and answer GET /healthz/ready: 200, or 503 with the reasons
    Run(RunArgs),
    /// Print the Envoy bootstrap for this Pod: JSON with sorted keys, the same for the same input
    Bootstrap(BootstrapArgs),
    /// Return when the sidecar is ready, or become a command then: wait -- cmd args
    Wait(WaitArgs),
}

/// Flags of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Envoy is started by somebody else; watch it, never start or signal it. This version needs it
    #[arg(long, env = "APP_HEALTH_NO_ENVOY", value_parser = BoolishValueParser::new())]
    pub no_envoy: bool,
    /// Where GET /healthz/ready is answered; `[::]` is IPv4 and IPv6
    #[arg(long, env = "APP_HEALTH_READY_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15021")]
    pub ready_address: SocketAddr,
    /// Envoy's admin port: unix:PATH or a loopback host:port
    #[arg(long, env = "APP_HEALTH_ADMIN", value_name = "ADDRESS", default_value = "127.0.0.1:15000")]
    pub admin: LocalAddress,
    /// Where the probe listener is asked whether it answers, listener and filter alike; without a path, for a probe that cannot be
    /// declared. `off` for an Envoy without our listener
    #[arg(
        long,
        env = "APP_HEALTH_DATA_PATH",
        value_name = "URL|off",
        default_value = "http://127.0.0.1:15020"
    )]
    pub data_path: OrOff<HttpUrl>,
    /// Do clusters and listeners come over xDS? `auto`: they do if Envoy has statistics about it
    #[arg(long, env = "APP_HEALTH_DYNAMIC", value_enum, default_value_t = Dynamic::Auto)]
    pub dynamic: Dynamic,
    /// First deadline of a question to the admin port; doubles after each timeout, at most 30
    #[arg(
        long,
        env = "APP_HEALTH_ADMIN_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u8).range(1..=30)
    )]
    pub admin_timeout_seconds: u8,
    /// How much is logged, to stderr
    #[arg(long, env = "APP_HEALTH_LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,
    /// How it is written
    #[arg(long, env = "APP_HEALTH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
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

/// Flags of `bootstrap`. The prober table comes from the environment: ISTIO_KUBE_APP_PROBERS.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The probes come from the environment variable ISTIO_KUBE_APP_PROBERS, as Istio's injector writes it: \
    {\"/app-health/app/livez\": {\"httpGet\": {\"path\": \"/live\", \"port\": 8080}, \"timeoutSeconds\": 1}}. Without it every probe is \
    answered 404."
)]
pub struct BootstrapArgs {
    /// The Pod's primary address, the only one that is probed; of a list (status.podIPs) the first. Also read from INSTANCE_IP.
    /// Default: the machine's first address that is neither loopback nor link-local, else 127.0.0.1
    #[arg(long, env = "APP_HEALTH_INSTANCE_IP", value_name = "ADDRESS[,…]", value_delimiter = ',')]
    pub instance_ip: Vec<IpAddr>,
    /// Where Envoy answers kubelet's probes; `[::]` is IPv4 and IPv6
    #[arg(long, env = "APP_HEALTH_PROBE_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15020")]
    pub probe_address: SocketAddr,
    /// Where Envoy answers GET /stats/prometheus with its own metrics, or `off`
    #[arg(
        long,
        env = "APP_HEALTH_STATS_ADDRESS",
        value_name = "ADDRESS:PORT|off",
        default_value = "[::]:15090"
    )]
    pub stats_address: OrOff<SocketAddr>,
    /// Where the agent answers this machine: a loopback host:port or unix:PATH
    #[arg(long, env = "APP_HEALTH_LOCAL_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:15004")]
    pub local_address: LocalAddress,
    /// Envoy's admin port: unix:PATH or a loopback host:port. Default: unix:STATE_DIR/admin.sock, for its owner alone
    #[arg(long, env = "APP_HEALTH_ADMIN", value_name = "ADDRESS")]
    pub admin: Option<LocalAddress>,
    /// Folder for the filter and the admin socket, made for its owner alone if one of them lies in it
    #[arg(long, env = "APP_HEALTH_STATE_DIR", value_name = "DIR", default_value = "/var/run/app-health")]
    pub state_dir: PathBuf,
    /// Take this filter, by the path that Envoy sees, instead of the one in this binary. Default: that one, written to STATE_DIR
    #[arg(long, env = "APP_HEALTH_FILTER_WASM", value_name = "FILE")]
    pub filter_wasm: Option<PathBuf>,
    /// Put the filter itself into the bootstrap, so that it needs no file. Envoy keeps those bytes in memory
    #[arg(long, env = "APP_HEALTH_INLINE_FILTER", value_parser = BoolishValueParser::new())]
    pub inline_filter: bool,
    /// Callers that may probe, a block such as 10.0.0.0/8; repeatable, and the twin is a list with commas. 127.0.0.1 and ::1 always may.
    /// Default: everybody
    #[arg(long, env = "APP_HEALTH_ALLOW_FROM", value_name = "CIDR", value_delimiter = ',')]
    pub allow_from: Vec<Cidr>,
    /// One more port of the proxy that no probe may target, such as a moved --ready-address or a listener of yours; repeatable, and the
    /// twin is a list with commas
    #[arg(
        long,
        env = "APP_HEALTH_RESERVED_PORTS",
        value_name = "PORT",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub reserved_port: Vec<u16>,
    /// Probe from 127.0.0.6 and ::6, which rules that capture the Pod's traffic let pass. `auto`: where the machine has the address
    #[arg(long, env = "APP_HEALTH_SOURCE_BIND", value_enum, default_value_t = SourceBind::Auto)]
    pub source_bind: SourceBind,
    /// The Envoy that will read it: 1.40 took to reading a setting of the filter in another place
    #[arg(long, env = "APP_HEALTH_ENVOY_VERSION", value_name = "X.Y", default_value_t = EnvoyVersion::NEWEST)]
    pub envoy_version: EnvoyVersion,
    /// Write the bootstrap there, readable for its owner alone; into a link or a device it is written as it is. Default: stdout
    #[arg(long, env = "APP_HEALTH_OUTPUT", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Do probes leave from 127.0.0.6 and ::6?
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SourceBind {
    /// From those that the machine has.
    Auto,
    /// From 127.0.0.6, and from ::6 if the machine has it.
    On,
    /// From wherever the kernel chooses.
    Off,
}

/// Flags of `wait`; camel case as in Istio's `pilot-agent wait`.
#[derive(Debug, clap::Args)]
pub struct WaitArgs {
    /// How long to wait in all; 0 is exactly one try
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_WAIT_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 60
    )]
    pub timeout_seconds: u32,
    /// How long one request may take
    #[arg(
        long = "requestTimeoutMillis",
        alias = "request-timeout-millis",
        env = "APP_HEALTH_WAIT_REQUEST_TIMEOUT_MILLIS",
        value_name = "MILLIS",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub request_timeout_millis: u32,
    /// Longest pause between two tries
    #[arg(
        long = "periodMillis",
        alias = "period-millis",
        env = "APP_HEALTH_WAIT_PERIOD_MILLIS",
        value_name = "MILLIS",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub period_millis: u32,
    /// Whom to ask: http://… or unix:PATH:/path
    #[arg(
        long,
        env = "APP_HEALTH_WAIT_URL",
        value_name = "URL",
        default_value = "http://localhost:15021/healthz/ready"
    )]
    pub url: HttpUrl,
    /// When the time is over: fail with 69, or continue with a warning
    #[arg(
        long = "onTimeout",
        alias = "on-timeout",
        env = "APP_HEALTH_WAIT_ON_TIMEOUT",
        value_enum,
        default_value_t = OnTimeout::Fail
    )]
    pub on_timeout: OnTimeout,
    /// Go on if from the start nothing accepts a connection for --optionalMillis: there is no sidecar
    #[arg(long, env = "APP_HEALTH_WAIT_OPTIONAL", value_parser = BoolishValueParser::new())]
    pub optional: bool,
    /// How long nothing must accept a connection
    #[arg(
        long = "optionalMillis",
        alias = "optional-millis",
        env = "APP_HEALTH_WAIT_OPTIONAL_MILLIS",
        value_name = "MILLIS",
        default_value_t = 5000
    )]
    pub optional_millis: u32,
    /// There is no sidecar: go on without a try. Also NO_SIDECAR, with any value but empty, 0 and false
    #[arg(
        long = "noSidecar",
        alias = "no-sidecar",
        env = "APP_HEALTH_WAIT_NO_SIDECAR",
        value_parser = FalseyValueParser::new()
    )]
    pub no_sidecar: bool,
    /// Where the last reason of a failure is written. Default: /dev/termination-log, if it can be written
    #[arg(
        long = "terminationMessage",
        alias = "termination-message",
        env = "APP_HEALTH_WAIT_TERMINATION_MESSAGE",
        value_name = "FILE"
    )]
    pub termination_message: Option<PathBuf>,
    /// What to become then: same process, same environment
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// What `wait` does when its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnTimeout {
    /// End with 69; the command is not started.
    Fail,
    /// End with 0, or start the command.
    Continue,
}

#[cfg(test)]
mod tests;
