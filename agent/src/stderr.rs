//! Lines to stderr that nobody has to read: a thread of its own writes them, so that a pipe that is full stops that thread and nothing
//! else. Another way would be a stderr that never blocks, but that is Envoy's too, which does not expect it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// What may wait, in bytes; lines that do not fit are dropped and counted.
const ROOM: usize = 64 * 1024;
/// How long the last lines may take at the end of the process.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The thread calls `write` and little else.
const STACK: usize = 64 * 1024;

static STDERR: OnceLock<Lines> = OnceLock::new();

/// Writes `line`, which has its line break already, sooner or later.
pub fn write(line: &[u8]) {
    STDERR.get_or_init(|| Lines::to(io::stderr())).push(line);
}

/// Waits until everything is written, for a second at most. To be called before the process ends, or becomes another one.
pub fn flush() {
    if let Some(lines) = STDERR.get() {
        lines.flush(LAST_WORDS);
    }
}

/// One line of the log, written as a whole.
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

/// Lines on their way.
#[derive(Debug, Clone)]
struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// A line came, or was written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    dropped: u64,
    /// One of them is being written.
    busy: bool,
    /// There is no thread: whoever has a line writes it.
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
            // A closed stderr changes nothing.
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
            // One line, one write: Envoy's lines go to the same place, and come between ours at most.
            let _ = writer.write_all(&line);
        }
    }

    fn flush(&self, within: Duration) {
        let left = |waiting: &mut Waiting| !waiting.lines.is_empty() || waiting.busy;
        // Whatever is not written by now nobody reads.
        let _ = self.0.changed.wait_timeout_while(self.waiting(), within, left);
    }

    /// No line is half in it, whoever panicked.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn push(&mut self, line: &[u8]) {
        let gap = match self.dropped {
            0 => String::new(),
            dropped => {
                format!("app-health-agent: {dropped} lines are missing here, since nobody read stderr\n")
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
