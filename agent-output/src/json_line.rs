//! Lines of the JSON log that are no events of `tracing`, in the same form.

use serde::Serialize;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// Severity of a line in Envoy's default format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvoyLevel {
    Trace,
    Debug,
    Info,
    Warning,
    Error,
    Critical,
}

impl EnvoyLevel {
    /// Returns the level of `raw`, or `None` if it is not in Envoy's default format.
    pub fn of(raw: &[u8]) -> Option<Self> {
        let head = &raw[..raw.len().min(HEAD)];
        EnvoyLine::parse(&String::from_utf8_lossy(head)).map(|line| line.level)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARN",
            Self::Error | Self::Critical => "ERROR",
        }
    }
}

/// Number of bytes in which Envoy writes time, thread, level and logger.
const HEAD: usize = 128;
/// Value of `target` for messages of the agent.
const AGENT: &str = "app_health_agent";
/// Value of `target` for lines of Envoy, to which `::` and the name of Envoy's logger are appended.
const ENVOY: &str = "envoy";

#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    level: &'a str,
    fields: Fields<'a>,
    target: &'a str,
}

#[derive(Serialize)]
struct Fields<'a> {
    message: &'a str,
    /// Time and thread as Envoy wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
}

/// Returns the line, with a line break, of a message of the agent.
pub fn of_agent(level: &str, message: &str) -> String {
    line(level, Fields { message, time: None, thread: None }, AGENT)
}

fn line(level: &str, fields: Fields, target: &str) -> String {
    let mut timestamp = String::new();
    // Formatting into a string fails only for times that cannot be represented.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let line = Line { timestamp, level, fields, target };
    let mut text = serde_json::to_string(&line).expect("strings can be serialized");
    text.push('\n');
    text
}

/// Converts the lines of one Envoy.
#[derive(Debug)]
pub struct EnvoyLines {
    /// Level of the last line that had one. Lines without a level continue that line.
    level: &'static str,
}

impl Default for EnvoyLines {
    fn default() -> Self {
        // What is printed before the first log line is an error, for example of the dynamic loader.
        Self { level: "ERROR" }
    }
}

impl EnvoyLines {
    /// Returns `raw`, which has no line break, as a line of JSON with a line break. JSON objects, which
    /// Envoy writes if its own log format says so, are not changed. `None` if the line is empty.
    pub fn convert(&mut self, raw: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(raw);
        let text = text.trim_end();
        if text.trim_start().is_empty() {
            return None;
        }
        if is_object(raw) {
            return Some(format!("{text}\n"));
        }
        Some(match EnvoyLine::parse(text) {
            Some(EnvoyLine { time, thread, level, logger, message }) => {
                self.level = level.word();
                let fields = Fields { message, time: Some(time), thread: Some(thread) };
                line(self.level, fields, &format!("{ENVOY}::{logger}"))
            }
            None => line(self.level, Fields { message: text, time: None, thread: None }, ENVOY),
        })
    }
}

fn is_object(raw: &[u8]) -> bool {
    raw.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<serde_json::Value>(raw).is_ok()
}

/// The parts of a line in Envoy's default format:
/// `[2026-01-31 10:20:30.400][12][info][main] [source/server/server.cc:430] message`.
struct EnvoyLine<'a> {
    time: &'a str,
    thread: &'a str,
    level: EnvoyLevel,
    logger: &'a str,
    message: &'a str,
}

impl<'a> EnvoyLine<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let field = |text: &'a str| text.strip_prefix('[')?.split_once(']');
        let (time, rest) = field(text)?;
        let (thread, rest) = field(rest)?;
        let (level, rest) = field(rest)?;
        let (logger, message) = field(rest)?;
        let level = match level {
            "trace" => EnvoyLevel::Trace,
            "debug" => EnvoyLevel::Debug,
            "info" => EnvoyLevel::Info,
            "warning" => EnvoyLevel::Warning,
            "error" => EnvoyLevel::Error,
            "critical" => EnvoyLevel::Critical,
            _ => return None,
        };
        Some(Self { time, thread, level, logger, message: message.trim_start() })
    }
}

#[cfg(test)]
mod tests;
