//! Non-blocking output to stderr. A separate thread writes the lines, so that a full pipe blocks
//! only that thread. The descriptor itself cannot be set to non-blocking, because Envoy shares it
//! and does not expect that.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::json_line;

/// Maximum size of the queue in bytes; lines that do not fit are dropped and counted.
const QUEUE_LIMIT: usize = 128 * 1024;
/// The part of the queue that lines of Envoy may use, which leaves room for lines of the agent.
pub const ENVOY_LIMIT: usize = QUEUE_LIMIT / 2;
/// If nothing is read from stderr for this time, lines of Envoy are dropped.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for writing the queued lines at the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Stack size of the writing thread, which calls `write` and little else.
const STACK_SIZE: usize = 64 * 1024;

static STDERR: OnceLock<StderrWriter> = OnceLock::new();
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Makes every line a JSON object from now on.
pub fn use_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Queues `line`, which ends with a line break.
pub fn write(line: &[u8]) {
    writer().push(line);
}

/// Queues a message of the agent that is no log event: an error that ends it, or a panic.
pub fn write_message(message: &str) {
    write(message_line(message).as_bytes());
}

/// Queues a line of Envoy. Waits for room as long as stderr is read; `stall` belongs to the caller.
pub fn write_when_read(line: &[u8], stall: &mut Stall) {
    writer().push_when_read(line, stall);
}

fn writer() -> &'static StderrWriter {
    STDERR.get_or_init(|| StderrWriter::new(io::stderr()))
}

fn message_line(message: &str) -> String {
    if IS_JSON.load(Ordering::Relaxed) {
        json_line::of_agent("ERROR", message)
    } else {
        format!("app-health-agent: {}\n", printable::lines(message))
    }
}

/// The number of bytes that had been written when stderr was last found to be blocked.
#[derive(Debug, Default)]
pub struct Stall(Option<usize>);

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
    /// Bytes that were written, modulo 2^64.
    written: Arc<AtomicUsize>,
    dropped: AtomicU64,
}

impl StderrWriter {
    fn new(mut writer: impl Write + Send + 'static) -> Self {
        let (queue, lines) = mpsc::channel::<Vec<u8>>();
        let (queued, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (in_queue, total) = (queued.clone(), written.clone());
        let thread = thread::Builder::new().name("stderr".to_owned()).stack_size(STACK_SIZE);
        let started = thread.spawn(move || {
            for line in lines {
                // Each line is one write, so that Envoy's lines on the same stderr can only appear
                // between lines.
                let _ = writer.write_all(&line);
                total.fetch_add(line.len(), Ordering::Relaxed);
                in_queue.fetch_sub(line.len(), Ordering::Relaxed);
            }
        });
        Self { queue: started.is_ok().then_some(queue), queued, written, dropped: AtomicU64::new(0) }
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
            _ => message_line(&format!("{dropped} lines dropped: stderr was not read")),
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

    /// A full queue delays the caller, and so Envoy, as a full pipe would, but only while stderr is
    /// read.
    fn push_when_read(&self, line: &[u8], stall: &mut Stall) {
        let mut seen = self.written.load(Ordering::Relaxed);
        let mut waited = Duration::ZERO;
        while self.queued.load(Ordering::Relaxed) + line.len() > ENVOY_LIMIT {
            let now = self.written.load(Ordering::Relaxed);
            if stall.0 == Some(now) || (seen == now && waited >= STALL_TIMEOUT) {
                stall.0 = Some(now);
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            if seen != now {
                (seen, waited) = (now, Duration::ZERO);
            }
            thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
        self.push(line);
    }

    /// Lines that are not written within `timeout` are lost.
    fn flush(&self, timeout: Duration) {
        for _ in 0..timeout.as_millis() {
            if self.queued.load(Ordering::Relaxed) == 0 {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests;
