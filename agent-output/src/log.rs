//! Logging to stderr, with a level that can change at run time.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use clap::ValueEnum;
use serving::log_targets::LogTargets;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, reload};

use crate::exit::stderr_line;
use crate::stderr::{self, LogLine};

/// Names of the log levels.
pub const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The agent's crates, as the targets of its log lines name them.
const TARGETS: &[(&str, &str)] = &[
    ("agent_server", "app_health_agent"),
    ("agent_state", "app_health_agent"),
    ("envoy_process", "app_health_agent"),
    ("scrape", "app_health_agent"),
    ("workload_prober", "app_health_agent::vm"),
    ("xds_client", "app_health_agent::vm::xds_client"),
];

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(Clone)]
pub struct LogLevelHandle(Arc<dyn Fn(LevelFilter) -> bool + Send + Sync>);

impl LogLevelHandle {
    /// Returns a handle without a log: it accepts every level and has no effect.
    pub fn detached() -> Self {
        Self(Arc::new(|_| true))
    }

    /// Sets a level such as `debug`; returns false if there is no such level.
    pub fn set(&self, level: &str) -> bool {
        LOG_LEVELS.contains(&level) && level.parse().is_ok_and(|level| (self.0)(level))
    }
}

/// Selects the format of everything that is written to stderr. It is called before the first line.
pub fn set_format(format: LogFormat) {
    match format {
        LogFormat::Text => {}
        LogFormat::Json => stderr::use_json(),
    }
}

/// Returns the format that a command line asks for which clap rejects, so that its error has that
/// format too. `variable` is the value of the flag's environment variable.
pub fn requested_format(words: impl IntoIterator<Item = OsString>, variable: Option<&OsStr>) -> LogFormat {
    let mut words = words.into_iter().take_while(|word| word != "--");
    let mut found = variable.map(OsStr::to_owned);
    while let Some(word) = words.next() {
        if word == "--log-format" {
            found = words.next();
        } else if let Some(value) = word.to_str().and_then(|word| word.strip_prefix("--log-format=")) {
            found = Some(value.into());
        }
    }
    if found.is_some_and(|found| found == "json") { LogFormat::Json } else { LogFormat::Text }
}

fn targets<F>(format: F) -> LogTargets<F> {
    LogTargets { format, names: TARGETS }
}

/// Initializes logging; it must be called only once per process.
pub fn init(level: LevelFilter, format: LogFormat) -> LogLevelHandle {
    let (level, handle) = reload::Layer::new(level);
    let lines = fmt::layer().with_writer(|| LogLine).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.map_event_format(targets).boxed(),
        LogFormat::Json => lines.json().map_event_format(targets).boxed(),
    };
    // The standard library writes panic messages with a blocking write, and a blocked stderr must
    // not stop the agent.
    std::panic::set_hook(Box::new(|panic| stderr_line(&panic.to_string())));
    tracing_subscriber::registry().with(lines.with_filter(level)).init();
    LogLevelHandle(Arc::new(move |level| handle.reload(level).is_ok()))
}

#[cfg(test)]
mod tests;
