//! Non-blocking output to stderr. A separate thread writes the lines, so that a full pipe blocks
//! only that thread. The descriptor itself cannot be set to non-blocking, because Envoy shares it
//! and does not expect that.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum size of the queue in bytes; lines that do not fit are dropped and counted.
const ROOM: usize = 64 * 1024;
/// Maximum time for writing the queued lines at the end of the process.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Stack size of the writing thread, which calls `write` and little else.
const STACK: usize = 64 * 1024;

static STDERR: OnceLock<Lines> = OnceLock::new();

/// Queues `line`, which ends with a line break.
pub fn write(line: &[u8]) {
    STDERR.get_or_init(|| Lines::to(io::stderr())).push(line);
}

/// Waits until all lines are written, for at most one second. Call it before the process exits or
/// executes another program.
pub fn flush() {
    if let Some(lines) = STDERR.get() {
        lines.flush(LAST_WORDS);
    }
}

/// Writer that passes each log line on as a whole.
#[derive(Debug, Clone, Copy)]
pub struct LogLine;

impl Write for LogLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Clone)]
struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when a line was queued or written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    dropped: u64,
    /// True while the thread writes a line.
    busy: bool,
    /// True if the thread could not be started; callers then write to stderr directly.
    alone: bool,
}

impl Lines {
    fn to(writer: impl Write + Send + 'static) -> Self {
        let lines = Self(Arc::default());
        let theirs = lines.clone();
        let thread = thread::Builder::new().name("stderr".to_owned()).stack_size(STACK);
        if thread.spawn(move || theirs.write_all(writer)).is_err() {
            lines.waiting().alone = true;
        }
        lines
    }

    fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.alone {
            drop(waiting);
            // A closed stderr has no effect.
            let _ = io::stderr().write_all(line);
            return;
        }
        waiting.push(line);
        drop(waiting);
        self.0.changed.notify_all();
    }

    fn write_all(&self, mut writer: impl Write) {
        loop {
            let mut waiting = self.waiting();
            waiting.busy = false;
            self.0.changed.notify_all();
            let mut waiting = self
                .0
                .changed
                .wait_while(waiting, |waiting| waiting.lines.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            let Some(line) = waiting.pop() else { continue };
            drop(waiting);
            // Each line is one write, so that Envoy's lines on the same stderr can only appear
            // between lines.
            let _ = writer.write_all(&line);
        }
    }

    fn flush(&self, within: Duration) {
        let left = |waiting: &mut Waiting| !waiting.lines.is_empty() || waiting.busy;
        // Lines that are not written by then are lost.
        let _ = self.0.changed.wait_timeout_while(self.waiting(), within, left);
    }

    /// Ignores lock poisoning, because a panic cannot leave the queue inconsistent.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn push(&mut self, line: &[u8]) {
        let gap = match self.dropped {
            0 => String::new(),
            dropped => {
                format!("app-health-agent: {dropped} lines dropped: stderr was not read\n")
            }
        };
        if self.bytes + gap.len() + line.len() > ROOM {
            self.dropped += 1;
            return;
        }
        self.dropped = 0;
        for line in [gap.as_bytes(), line].into_iter().filter(|line| !line.is_empty()) {
            self.bytes += line.len();
            self.lines.push_back(line.into());
        }
    }

    fn pop(&mut self) -> Option<Box<[u8]>> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        self.busy = true;
        Some(line)
    }
}

#[cfg(test)]
mod tests;
