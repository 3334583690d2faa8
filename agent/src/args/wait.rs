//! Flags of `wait`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{BoolishValueParser, FalseyValueParser};

use address::HttpUrl;

/// Flags of `wait`, in camel case as in Istio's `pilot-agent wait`.
#[derive(Debug, clap::Args)]
pub struct WaitArgs {
    /// How long to wait in total; 0 means a single attempt
    #[arg(
        long = "timeoutSeconds",
        alias = "timeout-seconds",
        env = "APP_HEALTH_WAIT_TIMEOUT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 60
    )]
    pub timeout_seconds: u32,
    /// Timeout of one request
    #[arg(
        long = "requestTimeoutMillis",
        alias = "request-timeout-millis",
        env = "APP_HEALTH_WAIT_REQUEST_TIMEOUT_MILLIS",
        value_name = "MILLIS",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub request_timeout_millis: u32,
    /// Longest pause between two attempts
    #[arg(
        long = "periodMillis",
        alias = "period-millis",
        env = "APP_HEALTH_WAIT_PERIOD_MILLIS",
        value_name = "MILLIS",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub period_millis: u32,
    /// URL of the readiness endpoint: http://… or unix:PATH:/path
    #[arg(
        long,
        env = "APP_HEALTH_WAIT_URL",
        value_name = "URL",
        default_value = "http://localhost:15021/healthz/ready"
    )]
    pub url: HttpUrl,
    /// After the timeout, either fail with exit code 69, or continue with a warning
    #[arg(
        long = "onTimeout",
        alias = "on-timeout",
        env = "APP_HEALTH_WAIT_ON_TIMEOUT",
        value_enum,
        default_value_t = OnTimeout::Fail
    )]
    pub on_timeout: OnTimeout,
    /// Continue if no connection is accepted within --optionalMillis from the start, which means
    /// that there is no sidecar
    #[arg(long, env = "APP_HEALTH_WAIT_OPTIONAL", value_parser = BoolishValueParser::new())]
    pub optional: bool,
    /// With --optional: how long no connection must be accepted
    #[arg(
        long = "optionalMillis",
        alias = "optional-millis",
        env = "APP_HEALTH_WAIT_OPTIONAL_MILLIS",
        value_name = "MILLIS",
        default_value_t = 5000
    )]
    pub optional_millis: u32,
    /// Continue immediately because there is no sidecar. Also NO_SIDECAR, with any value except
    /// empty, 0 and false
    #[arg(
        long = "noSidecar",
        alias = "no-sidecar",
        env = "APP_HEALTH_WAIT_NO_SIDECAR",
        value_parser = FalseyValueParser::new()
    )]
    pub no_sidecar: bool,
    /// File for the reason of a failure. Default: /dev/termination-log, if it is writable
    #[arg(
        long = "terminationMessage",
        alias = "termination-message",
        env = "APP_HEALTH_WAIT_TERMINATION_MESSAGE",
        value_name = "FILE"
    )]
    pub termination_message: Option<PathBuf>,
    /// Command to execute afterwards, in the same process with the same environment
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// What `wait` does after its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnTimeout {
    /// Exit with code 69 without executing the command.
    Fail,
    /// Exit with code 0, or execute the command.
    Continue,
}
