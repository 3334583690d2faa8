//! The command line. Every flag has an environment twin, `APP_HEALTH_` and the flag in upper snake case; a flag beats its twin. No twin
//! ends in `_PORT`, since kubelet sets such names for Services.

pub mod discovery;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Parser, Subcommand, ValueEnum};

use discovery::{DiscoveryArgs, WorkloadsArgs};
use injector::flags::SettingsArgs;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "app-health",
    version,
    about = "Rewrites Pods so that kubelet's probes arrive at the filter inside Envoy; serves the health of virtual machines over xDS.",
    after_help = "Typical use:\n  \
        app-health inject -f shop.yaml | kubectl apply -f -   by hand\n  \
        app-health inject -f shop.yaml --diff                 what would change\n  \
        app-health webhook                                    by the API server, inside the cluster\n  \
        app-health discovery --config-dir mesh                health of virtual machines to every Envoy\n  \
        app-health workloads --watch                          what discovery knows of them"
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Inject into files: YAML or JSON in, the same out
    Inject(InjectArgs),
    /// Answer the API server: HTTPS POST /inject
    Webhook(WebhookArgs),
    /// Serve endpoints to Envoys over xDS, without those that agents report as unhealthy
    Discovery(Box<DiscoveryArgs>),
    /// Show what `discovery` knows of each workload
    Workloads(WorkloadsArgs),
}

/// Flags of `inject`.
#[derive(Debug, clap::Args)]
pub struct InjectArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "its fields speak for themselves")]
    pub settings: SettingsArgs,
    /// A file, `-` for stdin, or a directory: its .yaml, .yml and .json, in byte order; repeatable
    #[arg(short, long, env = "APP_HEALTH_FILENAME", value_name = "FILE", default_value = "-")]
    pub filename: Vec<PathBuf>,
    /// With the subdirectories
    #[arg(short = 'R', long, env = "APP_HEALTH_RECURSIVE", value_parser = BoolishValueParser::new())]
    pub recursive: bool,
    /// Write all documents there. Default: stdout
    #[arg(short, long, env = "APP_HEALTH_OUTPUT", value_name = "FILE", conflicts_with_all = ["in_place", "diff", "dry_run"])]
    pub output: Option<PathBuf>,
    /// Each file gets its own documents back
    #[arg(long, env = "APP_HEALTH_IN_PLACE", value_parser = BoolishValueParser::new(), conflicts_with_all = ["diff", "dry_run"])]
    pub in_place: bool,
    /// How documents are written; `auto`: each as it came
    #[arg(long, env = "APP_HEALTH_FORMAT", value_enum, default_value_t = FormatArg::Auto)]
    pub format: FormatArg,
    /// Show what would change, as a unified diff, and write nothing; exits 1 if something would
    #[arg(long, env = "APP_HEALTH_DIFF", value_parser = BoolishValueParser::new(), conflicts_with = "dry_run")]
    pub diff: bool,
    /// Colour the diff; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(long, env = "APP_HEALTH_COLOR", value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Say in a line for each document what would become of it, and write nothing
    #[arg(long, env = "APP_HEALTH_DRY_RUN", value_parser = BoolishValueParser::new())]
    pub dry_run: bool,
    /// A warning is an error
    #[arg(long, env = "APP_HEALTH_STRICT", value_parser = BoolishValueParser::new())]
    pub strict: bool,
}

/// How documents are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words speak for themselves")]
pub enum FormatArg {
    Auto,
    Yaml,
    Json,
}

/// Whether a diff has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words speak for themselves")]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// Flags of `webhook`.
#[derive(Debug, clap::Args)]
pub struct WebhookArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "its fields speak for themselves")]
    pub settings: SettingsArgs,
    /// Where POST /inject is answered, over TLS
    #[arg(long, env = "APP_HEALTH_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15017")]
    pub address: SocketAddr,
    /// Where /metrics, /healthz/live and /healthz/ready are answered, in plaintext
    #[arg(
        long,
        env = "APP_HEALTH_MONITORING_ADDRESS",
        value_name = "ADDRESS:PORT",
        default_value = "[::]:15014"
    )]
    pub monitoring_address: SocketAddr,
    /// Folder with tls.crt and tls.key, as in a mounted Secret. Default: a certificate of our own, put into the webhook's configuration
    #[arg(long, env = "APP_HEALTH_CERT_DIR", value_name = "DIR")]
    pub cert_dir: Option<PathBuf>,
    /// Demand a client certificate that this CA signed
    #[arg(long, env = "APP_HEALTH_CLIENT_CA", value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// And with this common name or subject alternative name
    #[arg(long, env = "APP_HEALTH_CLIENT_NAME", value_name = "NAME", requires = "client_ca")]
    pub client_name: Option<String>,
    /// Whose caBundle the self-made CA belongs into: a MutatingWebhookConfiguration
    #[arg(long, env = "APP_HEALTH_WEBHOOK_CONFIG", value_name = "NAME", default_value = "app-health")]
    pub webhook_config: String,
    /// The Service in front of this process, which a self-made certificate names
    #[arg(long, env = "APP_HEALTH_SERVICE", value_name = "NAME", default_value = "app-health-webhook")]
    pub service: String,
    /// Its namespace, which is never touched. Default: POD_NAMESPACE, else app-health-system
    #[arg(long, env = "APP_HEALTH_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// After SIGTERM, go on accepting for so long: 5s, 500ms
    #[arg(long, env = "APP_HEALTH_SHUTDOWN_GRACE", value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub shutdown_grace: Duration,
}

/// Whole seconds or milliseconds: `5s`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "must be like 5s or 500ms".to_owned();
    let (number, unit): (_, fn(u64) -> Duration) = match text.strip_suffix("ms") {
        Some(number) => (number, Duration::from_millis),
        None => (text.strip_suffix('s').ok_or_else(wrong)?, Duration::from_secs),
    };
    number.parse().map(unit).map_err(|_| wrong())
}

#[cfg(test)]
mod tests;
