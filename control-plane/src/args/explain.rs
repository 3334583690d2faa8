//! Flags of `explain`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

use super::duration;

/// Flags of `explain`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 healthy, 1 unhealthy, 3 not injected, 4 unknown, for example because a \
    permission is missing; 64 a flag is invalid, 69 the API server does not respond.\n\n\
    Probes are requested through the API server's Pod proxy; lifecycle hooks never are."
)]
pub struct ExplainArgs {
    /// Object to explain: pod/NAME, deployment/NAME, statefulset/NAME, daemonset/NAME,
    /// replicaset/NAME or job/NAME; a name alone is that of a Pod
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    pub object: Vec<String>,
    /// Namespace of the object. Default: that of the kubeconfig's context
    #[arg(short, long, env = "APP_HEALTH_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Path of the kubeconfig. Default: the files of KUBECONFIG, else ~/.kube/config, else the
    /// service account of the Pod in which the command runs
    #[arg(long, env = "APP_HEALTH_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: its current one
    #[arg(long, env = "APP_HEALTH_CONTEXT", value_name = "NAME")]
    pub context: Option<String>,
    /// Output format
    #[arg(short, long, env = "APP_HEALTH_OUTPUT", value_enum, default_value_t = ReportFormat::Text)]
    pub output: ReportFormat,
    /// Read everything again every two seconds, and print it after every change
    #[arg(short, long, env = "APP_HEALTH_WATCH", value_parser = BoolishValueParser::new())]
    pub watch: bool,
    /// Timeout of each request to the API server; a probe has at least its own timeout: 5s, 500ms
    #[arg(long, env = "APP_HEALTH_TIMEOUT", value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
    /// Name of the MutatingWebhookConfiguration of the webhook
    #[arg(long, env = "APP_HEALTH_WEBHOOK_CONFIG", value_name = "NAME", default_value = "app-health")]
    pub webhook_config: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    Text,
    /// One object; with --watch one line for each change.
    Json,
}
