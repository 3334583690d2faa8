//! Non-blocking output to stderr. A separate thread writes the lines, so that a full pipe blocks
//! only that thread. The descriptor itself cannot be set to non-blocking, because Envoy shares it
//! and does not expect that.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Maximum size of the queue in bytes; lines that do not fit are dropped and counted.
const QUEUE_LIMIT: usize = 64 * 1024;
/// Maximum time for writing the queued lines at the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Stack size of the writing thread, which calls `write` and little else.
const STACK_SIZE: usize = 64 * 1024;

static STDERR: OnceLock<StderrWriter> = OnceLock::new();

/// Queues `line`, which ends with a line break.
pub fn write(line: &[u8]) {
    STDERR.get_or_init(|| StderrWriter::new(io::stderr())).push(line);
}

/// Waits until all lines are written, for at most one second. Call it before the process exits or
/// executes another program.
pub fn flush() {
    if let Some(writer) = STDERR.get() {
        writer.flush(FLUSH_TIMEOUT);
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

#[derive(Debug)]
struct StderrWriter {
    /// `None` if the thread could not be started; callers then write to stderr directly.
    queue: Option<Sender<Vec<u8>>>,
    /// Bytes that are queued or being written.
    queued: Arc<AtomicUsize>,
    dropped: AtomicU64,
}

impl StderrWriter {
    fn new(mut writer: impl Write + Send + 'static) -> Self {
        let (queue, lines) = mpsc::channel::<Vec<u8>>();
        let queued = Arc::new(AtomicUsize::new(0));
        let written = queued.clone();
        let thread = thread::Builder::new().name("stderr".to_owned()).stack_size(STACK_SIZE);
        let started = thread.spawn(move || {
            for line in lines {
                // Each line is one write, so that Envoy's lines on the same stderr can only appear
                // between lines.
                let _ = writer.write_all(&line);
                written.fetch_sub(line.len(), Ordering::Relaxed);
            }
        });
        Self { queue: started.is_ok().then_some(queue), queued, dropped: AtomicU64::new(0) }
    }

    fn push(&self, line: &[u8]) {
        let Some(queue) = &self.queue else {
            // A closed stderr has no effect.
            let _ = io::stderr().write_all(line);
            return;
        };
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let mut lines = match dropped {
            0 => String::new(),
            _ => format!("app-health-agent: {dropped} lines dropped: stderr was not read\n"),
        }
        .into_bytes();
        lines.extend_from_slice(line);
        let length = lines.len();
        if self.queued.fetch_add(length, Ordering::Relaxed) + length > QUEUE_LIMIT {
            self.queued.fetch_sub(length, Ordering::Relaxed);
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
            return;
        }
        let _ = queue.send(lines);
    }

    /// Lines that are not written within `timeout` are lost.
    fn flush(&self, timeout: Duration) {
        for _ in 0..timeout.as_millis() {
            if self.queued.load(Ordering::Relaxed) == 0 {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests;
