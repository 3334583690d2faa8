//! The log on stderr, and its level at run time.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use tokio::time::Instant;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, reload};

use crate::args::{LogFormat, LogLevel};
use crate::config::level_filter;
use crate::exit::stderr_line;
use crate::stderr::LogLine;

/// Between two lines about the same.
const MINUTE: Duration = Duration::from_secs(60);

/// Changes the level of the log.
#[derive(Clone)]
pub struct LogLevelHandle(Arc<dyn Fn(LevelFilter) -> bool + Send + Sync>);

impl LogLevelHandle {
    /// For a log that is nobody's: every level is taken, and nothing happens.
    pub fn detached() -> Self {
        Self(Arc::new(|_| true))
    }

    /// `debug`; `false`: no such level.
    pub fn set(&self, level: &str) -> bool {
        LogLevel::from_str(level, false).is_ok_and(|level| (self.0)(level_filter(level)))
    }
}

/// A warning that may come again and again: told once a minute, with how often it came meanwhile.
#[derive(Debug, Default)]
pub struct Repeated {
    untold: u64,
    told: Option<Instant>,
}

impl Repeated {
    /// It came once more at `now`. `Some`: it shall be told now, and stands for so many.
    pub fn came(&mut self, now: Instant) -> Option<u64> {
        self.untold += 1;
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < MINUTE) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

/// Begins to log; once in a process.
pub fn init(level: LevelFilter, format: LogFormat) -> LogLevelHandle {
    let (level, handle) = reload::Layer::new(level);
    let lines = fmt::layer().with_writer(|| LogLine).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // Nor must the words of a panic stop anything, which the standard library would write by itself.
    std::panic::set_hook(Box::new(|panic| stderr_line(&panic.to_string())));
    tracing_subscriber::registry().with(lines.with_filter(level)).init();
    LogLevelHandle(Arc::new(move |level| handle.reload(level).is_ok()))
}

#[cfg(test)]
mod tests;
