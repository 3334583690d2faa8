//! Which results of a probe are logged.

use crate::path::ProbePath;
use crate::reason::Reason;

/// The maximum number of log lines in [`WINDOW_NS`].
const MAX_LINES: u32 = 10;
/// One minute, in nanoseconds.
const WINDOW_NS: u64 = 60_000_000_000;

/// A log line about a changed result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// True for a failure, which is logged as a warning; false for a success, which is logged as
    /// information.
    pub warn: bool,
    /// Consists of names from the configuration and of the reason words; contains nothing that a
    /// client or the application sent.
    pub text: String,
}

impl LogLine {
    /// Returns the line for a result if it differs from the one before, or is a first failure.
    pub fn of_change(path: &ProbePath, before: Option<Reason>, reason: Reason) -> Option<Self> {
        let name = || format!("probe {}/{}", path.container(), path.kind().word());
        let text = match before {
            Some(before) if before != reason => {
                format!("{}: {}, was {}", name(), reason.word(), before.word())
            }
            None if !reason.is_success() => format!("{}: {}", name(), reason.word()),
            _ => return None,
        };
        Some(Self { warn: !reason.is_success(), text })
    }

    /// Returns the text about a client that may not call a hook.
    pub fn forbidden(path: &ProbePath, client: &str) -> String {
        let (container, hook) = (path.container(), path.kind().word());
        format!("hook {container}/{hook}: forbidden to {client}, see --allow-from")
    }

    /// Returns the text about lines that the limit suppressed.
    pub fn suppressed(lines: u64) -> String {
        format!("{lines} lines about probes were suppressed")
    }
}

/// A rate limit for log lines.
#[derive(Debug, Default)]
pub struct LogLimiter {
    since: Option<u64>,
    lines: u32,
    suppressed: u64,
}

impl LogLimiter {
    /// Returns `None` if no line may be logged at `now` (in nanoseconds of any clock). Otherwise
    /// returns the number of lines suppressed since the last logged one.
    pub fn check(&mut self, now: u64) -> Option<u64> {
        let current = self.since.is_some_and(|since| now >= since && now.saturating_sub(since) < WINDOW_NS);
        if !current {
            self.since = Some(now);
            self.lines = 0;
        }
        if self.lines >= MAX_LINES {
            self.suppressed = self.suppressed.saturating_add(1);
            return None;
        }
        self.lines = self.lines.saturating_add(1);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests;
