//! Command-line flags. Every flag can also be set by an environment variable: `APP_HEALTH_` and the
//! flag's name in upper snake case. A flag takes precedence. No variable ends in `_PORT`, since
//! kubelet sets variables with such names for Services.

pub mod discovery;
pub mod explain;
pub mod lint;
mod version;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use address::Cidr;
use clap::builder::BoolishValueParser;
use clap::{Parser, Subcommand, ValueEnum};

use discovery::{DiscoveryArgs, WorkloadsArgs};
use explain::ExplainArgs;
use injector::flags::{KindsArgs, SettingsArgs};
use lint::LintArgs;

#[derive(Debug, Parser)]
#[command(
    name = "app-health",
    version,
    long_version = version::LONG.as_str(),
    about = "Rewrites Pods so that the filter inside Envoy answers kubelet's probes; lints probes, and explains why Pods are not healthy; serves the health of virtual machines over xDS.",
    after_help = "Examples:\n  \
        app-health inject -f shop.yaml | kubectl apply -f -   inject manually\n  \
        app-health inject -f shop.yaml --diff                 show what would change\n  \
        app-health lint -R manifests                          report problems of probes and hooks\n  \
        app-health explain deployment/web -n shop             find out why Pods are not healthy\n  \
        app-health webhook                                    serve the admission webhook in the cluster\n  \
        app-health discovery --config-dir mesh                serve the health of virtual machines to Envoy\n  \
        app-health workloads --watch                          watch the state of the workloads"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Inject into YAML or JSON files; the output has the format of the input
    Inject(InjectArgs),
    /// Report problems of probes and hooks, in files or in a cluster, and what `inject` would warn about
    Lint(Box<LintArgs>),
    /// Explain why a Pod or the Pods of a workload are not healthy, and what to do about it
    Explain(ExplainArgs),
    /// Serve the mutating admission webhook: HTTPS POST /inject
    Webhook(WebhookArgs),
    /// Serve endpoints to Envoy over xDS, without those that agents report as unhealthy
    Discovery(Box<DiscoveryArgs>),
    /// Show the state of each workload that `discovery` knows
    Workloads(WorkloadsArgs),
}

/// Flags of `inject`.
#[derive(Debug, clap::Args)]
pub struct InjectArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub kinds: KindsArgs,
    /// File, `-` for stdin, or directory, whose .yaml, .yml and .json files are read in byte order;
    /// repeatable
    #[arg(short, long, env = "APP_HEALTH_FILENAME", value_name = "FILE", default_value = "-")]
    pub filename: Vec<PathBuf>,
    /// Include subdirectories
    #[arg(short = 'R', long, env = "APP_HEALTH_RECURSIVE", value_parser = BoolishValueParser::new())]
    pub recursive: bool,
    /// Write all documents to this file. Default: stdout
    #[arg(short, long, env = "APP_HEALTH_OUTPUT", value_name = "FILE", conflicts_with_all = ["in_place", "diff", "dry_run"])]
    pub output: Option<PathBuf>,
    /// Write each file's documents back to that file
    #[arg(long, env = "APP_HEALTH_IN_PLACE", value_parser = BoolishValueParser::new(), conflicts_with_all = ["diff", "dry_run"])]
    pub in_place: bool,
    /// Format of the output; `auto` keeps the format of each document
    #[arg(long, env = "APP_HEALTH_FORMAT", value_enum, default_value_t = FormatArg::Auto)]
    pub format: FormatArg,
    /// Print the changes as a unified diff and write nothing; exits with 1 if there are any
    #[arg(long, env = "APP_HEALTH_DIFF", value_parser = BoolishValueParser::new(), conflicts_with = "dry_run")]
    pub diff: bool,
    /// Colorize the diff; `auto`: if stdout is a terminal and NO_COLOR is not set
    #[arg(long, env = "APP_HEALTH_COLOR", value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Print one line for each document that says what would be done, and write nothing
    #[arg(long, env = "APP_HEALTH_DRY_RUN", value_parser = BoolishValueParser::new())]
    pub dry_run: bool,
    /// Treat warnings as errors
    #[arg(long, env = "APP_HEALTH_STRICT", value_parser = BoolishValueParser::new())]
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    Auto,
    Yaml,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// Flags of `webhook`.
#[derive(Debug, clap::Args)]
pub struct WebhookArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Address for POST /inject, over TLS
    #[arg(long, env = "APP_HEALTH_ADDRESS", value_name = "ADDRESS:PORT", default_value = "[::]:15017")]
    pub address: SocketAddr,
    /// Address for /metrics, /healthz/live and /healthz/ready, in plaintext
    #[arg(
        long,
        env = "APP_HEALTH_MONITORING_ADDRESS",
        value_name = "ADDRESS:PORT",
        default_value = "[::]:15014"
    )]
    pub monitoring_address: SocketAddr,
    /// Directory with tls.crt and tls.key, as in a mounted Secret. Default: a self-signed CA, whose
    /// certificate is written to the webhook configuration
    #[arg(long, env = "APP_HEALTH_CERT_DIR", value_name = "DIR")]
    pub cert_dir: Option<PathBuf>,
    /// Require a client certificate that this CA signed
    #[arg(long, env = "APP_HEALTH_CLIENT_CA", value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// Require this common name or subject alternative name in the client certificate
    #[arg(long, env = "APP_HEALTH_CLIENT_NAME", value_name = "NAME", requires = "client_ca")]
    pub client_name: Option<String>,
    /// Addresses from which the API server calls the webhook; repeatable. Parts of the connections, the
    /// reviews and the memory are reserved for them, as for clients with a certificate of --client-ca
    #[arg(long, env = "APP_HEALTH_API_SERVER_ADDRESS", value_name = "CIDR[,…]", value_delimiter = ',')]
    pub api_server_address: Vec<Cidr>,
    /// Name of the MutatingWebhookConfiguration whose caBundle is set to the self-signed CA
    #[arg(long, env = "APP_HEALTH_WEBHOOK_CONFIG", value_name = "NAME", default_value = "app-health")]
    pub webhook_config: String,
    /// Name of the Service in front of this process; used in the self-signed certificate
    #[arg(long, env = "APP_HEALTH_SERVICE", value_name = "NAME", default_value = "app-health-webhook")]
    pub service: String,
    /// Namespace of that Service; its Pods are never changed. Default: POD_NAMESPACE, else
    /// app-health-system
    #[arg(long, env = "APP_HEALTH_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// How long connections are still accepted after SIGTERM: 5s, 500ms
    #[arg(long, env = "APP_HEALTH_SHUTDOWN_GRACE", value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub shutdown_grace: Duration,
}

/// Parses whole seconds or milliseconds: `5s`, `500ms`.
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
