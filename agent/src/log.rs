//! Logging to stderr, with a level that can change at run time.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, reload};

use crate::args::{LogFormat, LogLevel};
use crate::exit::stderr_line;
use crate::stderr::LogLine;

/// Minimum interval between two log lines about the same event.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct LogLevelHandle(Arc<dyn Fn(LevelFilter) -> bool + Send + Sync>);

impl LogLevelHandle {
    /// Returns a handle without a log: it accepts every level and has no effect.
    pub fn detached() -> Self {
        Self(Arc::new(|_| true))
    }

    /// Sets a level such as `debug`; returns false if there is no such level.
    pub fn set(&self, level: &str) -> bool {
        LogLevel::from_str(level, false).is_ok_and(|level| (self.0)(level_filter(level)))
    }
}

pub fn level_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Rate limiter for a repeated warning: it is logged at most once a minute, with the number of
/// occurrences since the previous line.
#[derive(Debug, Default)]
pub struct LogLimiter {
    suppressed: u64,
    last_logged: Option<Instant>,
}

impl LogLimiter {
    /// Records an occurrence at `now`. `Some(n)` means that the warning is due and covers n
    /// occurrences.
    pub fn record(&mut self, now: Instant) -> Option<u64> {
        self.suppressed += 1;
        if self
            .last_logged
            .is_some_and(|last_logged| now.saturating_duration_since(last_logged) < LOG_INTERVAL)
        {
            return None;
        }
        self.last_logged = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// Initializes logging; it must be called only once per process.
pub fn init(level: LevelFilter, format: LogFormat) -> LogLevelHandle {
    let (level, handle) = reload::Layer::new(level);
    let lines = fmt::layer().with_writer(|| LogLine).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // The standard library writes panic messages with a blocking write, and a blocked stderr must
    // not stop the agent.
    std::panic::set_hook(Box::new(|panic| stderr_line(&panic.to_string())));
    tracing_subscriber::registry().with(lines.with_filter(level)).init();
    LogLevelHandle(Arc::new(move |level| handle.reload(level).is_ok()))
}

#[cfg(test)]
mod tests;
