//! Flags of `lint`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

use super::duration;
use injector::flags::{KindsArgs, SettingsArgs};

/// Flags of `lint`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 no errors; 1 an error, or with --strict a warning; 64 usage; \
                        65 an input cannot be parsed; 66 an input or the cluster cannot be read; \
                        69 the API server is not reachable; 78 the template or a setting is invalid.\n\n\
                        The annotation app-health.io/lint-ignore: \"AH003,AH007\" on an object or its \
                        Pod template suppresses rules.")]
pub struct LintArgs {
    /// File, `-` for stdin, or directory, whose .yaml, .yml and .json files are read in byte order;
    /// repeatable. Default: stdin
    #[arg(short, long, env = "APP_HEALTH_FILENAME", value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Directory that is read with its subdirectories; repeatable. Files that contain no Kubernetes
    /// objects, and templates, are skipped
    #[arg(short = 'R', long, env = "APP_HEALTH_RECURSIVE", value_name = "DIR")]
    pub recursive: Vec<PathBuf>,
    /// Read the workloads of the cluster in the kubeconfig, or of the cluster in which it runs
    #[arg(
        long,
        env = "APP_HEALTH_CLUSTER",
        value_parser = BoolishValueParser::new(),
        conflicts_with_all = ["filename", "recursive"]
    )]
    pub cluster: bool,
    /// With --cluster: this namespace. Default: that of the kubeconfig
    #[arg(short, long, env = "APP_HEALTH_NAMESPACE", value_name = "NAMESPACE", requires = "cluster")]
    pub namespace: Option<String>,
    /// With --cluster: all namespaces
    #[arg(
        short = 'A',
        long,
        env = "APP_HEALTH_ALL_NAMESPACES",
        value_parser = BoolishValueParser::new(),
        requires = "cluster",
        conflicts_with = "namespace"
    )]
    pub all_namespaces: bool,
    /// Format of the findings
    #[arg(long, env = "APP_HEALTH_FORMAT", value_enum, default_value_t = LintFormat::Text)]
    pub format: LintFormat,
    /// Exit with 1 for warnings too
    #[arg(long, env = "APP_HEALTH_STRICT", value_parser = BoolishValueParser::new())]
    pub strict: bool,
    /// How long the application may stop, for example for garbage collection, without a restart:
    /// 30s, 500ms
    #[arg(long, env = "APP_HEALTH_EXPECT_PAUSE", value_name = "DURATION", value_parser = duration)]
    pub expect_pause: Option<Duration>,
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub kinds: KindsArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// A line for each finding, for a terminal.
    Text,
    /// One object with all findings.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
}
