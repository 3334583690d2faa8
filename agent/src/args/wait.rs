//! The flags of `wait`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{BoolishValueParser, FalseyValueParser};

use crate::address::HttpUrl;

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
