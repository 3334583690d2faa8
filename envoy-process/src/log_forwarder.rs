//! Reads what Envoy writes to stderr and writes it to the agent's stderr, within a limit, and as lines of
//! JSON if the log has that format. A thread of its own does this, so that neither a busy nor a hanging
//! agent blocks Envoy.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use agent_output::json_line::{EnvoyLevel, EnvoyLines};
use agent_output::log::LogFormat;
use agent_output::stderr::{self, Stall};
use agent_state::metrics::Metrics;
use pacing::RateLimiter;
use serving::log_limiter::LogLimiter;
use tracing::warn;

/// Maximum length of a line in bytes; the rest of a longer one becomes further lines. As JSON a line is at
/// most six times as long, and fits in [`stderr::ENVOY_LIMIT`].
const LINE_LIMIT: usize = 10 * 1024;
const BUFFER: usize = 8 * 1024;
/// Time in which one more byte of warnings is admitted, and how many are admitted at once: 32 KiB per minute
/// in the long run, and at most 64 KiB in any minute.
const BYTE_INTERVAL: Duration = Duration::from_nanos(60_000_000_000 / (32 * 1024));
const BURST: u32 = 32 * 1024;
/// Stack size of the thread: the buffer, and room for the parser of JSON.
const STACK_SIZE: usize = 256 * 1024;
/// Time without output after which the wait for the last lines of an Envoy that has exited ends: a
/// process that Envoy started can keep the pipe open. It is longer than the second for which
/// [`stderr::write_when_read`] waits for a blocked stderr.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time to wait for these lines: such a process can write forever.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// The thread ends when every process has closed its end of the pipe.
#[derive(Debug)]
pub struct LogForwarder {
    ended: CancellationToken,
    /// Notified after each read.
    progress: Arc<Notify>,
    /// Set once the wait for the last lines has begun.
    wait: Option<Box<Wait>>,
}

/// When the wait for the last lines ends.
#[derive(Debug, Clone, Copy)]
struct Wait {
    /// The wait ends then if nothing has been read meanwhile.
    idle_by: Instant,
    /// The wait ends then also if lines still arrive.
    finish_by: Instant,
}

impl LogForwarder {
    /// Returns the end of a pipe for Envoy's stderr.
    pub fn start(format: LogFormat, metrics: Arc<Metrics>) -> io::Result<(PipeWriter, Self)> {
        let (reader, writer) = io::pipe()?;
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let progress = Arc::new(Notify::new());
        let is_read = Arc::clone(&progress);
        let thread = thread::Builder::new().name("envoy-log".to_owned()).stack_size(STACK_SIZE);
        thread.spawn(move || {
            let _guard = guard;
            let mut stall = Stall::default();
            let (mut limit, start) = (Limit::new(metrics), Instant::now());
            let mut lines = EnvoyLines::default();
            read_lines(
                reader,
                || is_read.notify_one(),
                |line, part| {
                    if !limit.admits(line, part, start.elapsed()) {
                        return;
                    }
                    match format {
                        LogFormat::Text => stderr::write_when_read(&[line, b"\n"].concat(), &mut stall),
                        LogFormat::Json => {
                            let line = lines.convert(line);
                            line.into_iter()
                                .for_each(|line| stderr::write_when_read(line.as_bytes(), &mut stall));
                        }
                    }
                },
            );
        })?;
        Ok((writer, Self { ended, progress, wait: None }))
    }

    /// Waits until all lines of an Envoy that has exited are queued. The future is cancel safe.
    pub async fn finish(&mut self) {
        let now = Instant::now();
        let first = Box::new(Wait { idle_by: now + IDLE_TIMEOUT, finish_by: now + FINISH_TIMEOUT });
        let wait = self.wait.get_or_insert(first);
        loop {
            let until = wait.idle_by.min(wait.finish_by);
            tokio::select! {
                () = self.ended.cancelled() => return,
                // Another process has the pipe; its lines may still come.
                () = sleep_until(until) => return,
                () = self.progress.notified() => wait.idle_by = Instant::now() + IDLE_TIMEOUT,
            }
        }
    }
}

/// Whether what [`read_lines`] passes on begins a line or is a later part of a longer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Later,
}

/// Drops warnings and errors of Envoy beyond the limit, since clients can cause some of them, with text of
/// theirs. Other lines are what the user asked for: access logs, lines of levels that clients do not cause
/// unless the user lowers the level, and lines in another format.
#[derive(Debug)]
struct Limit {
    rate: RateLimiter,
    line: Line,
    metrics: Arc<Metrics>,
    reports: LogLimiter,
}

/// The current line of [`Limit`], of which later parts have no level.
#[derive(Debug, Clone, Copy)]
enum Line {
    Unlimited,
    Limited,
    Dropped,
}

impl Limit {
    fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            rate: RateLimiter::new(BYTE_INTERVAL, BURST),
            line: Line::Unlimited,
            metrics,
            reports: LogLimiter::default(),
        }
    }

    /// `now` is a duration since an arbitrary start.
    fn admits(&mut self, line: &[u8], part: Part, now: Duration) -> bool {
        if part == Part::First {
            self.line = match EnvoyLevel::of(line) {
                Some(EnvoyLevel::Warning | EnvoyLevel::Error) => Line::Limited,
                _ => Line::Unlimited,
            };
        }
        let bytes = u32::try_from(line.len()).unwrap_or(u32::MAX);
        match self.line {
            Line::Unlimited => true,
            Line::Dropped => false,
            Line::Limited if self.rate.take_many(bytes, now).is_ok() => true,
            Line::Limited => {
                self.line = Line::Dropped;
                self.count_dropped();
                false
            }
        }
    }

    fn count_dropped(&mut self) {
        self.metrics.envoy_log_line_dropped();
        if let Some(lines) = self.reports.record(Instant::now()) {
            warn!(lines, "envoy logs more than 64 KiB of warnings in a minute, lines dropped");
        }
    }
}

/// Calls `write` with each line, without its line break, or with each part of [`LINE_LIMIT`] bytes of a longer
/// one, until the end of the output. Calls `read` after each read.
fn read_lines(mut output: PipeReader, read: impl Fn(), mut write: impl FnMut(&[u8], Part)) {
    let (mut line, mut buffer) = (Vec::new(), [0; BUFFER]);
    let mut part = Part::First;
    loop {
        let length = match output.read(&mut buffer) {
            Ok(length @ 1..) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => break,
        };
        read();
        for byte in &buffer[..length] {
            let is_end = *byte == b'\n';
            if !is_end {
                line.push(*byte);
            }
            if is_end || line.len() == LINE_LIMIT {
                write(&line, part);
                part = if is_end { Part::First } else { Part::Later };
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        write(&line, part);
    }
}

#[cfg(test)]
mod tests;
