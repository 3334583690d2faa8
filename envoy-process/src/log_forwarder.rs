//! Reads what Envoy writes to stderr and writes it to the agent's stderr as lines of JSON. A thread of
//! its own does this, so that neither a busy nor a hanging agent blocks Envoy.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::thread;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use agent_output::json_line::EnvoyLines;
use agent_output::stderr::{self, Stall};

/// Maximum length of a line in bytes; the rest of a longer one becomes further lines. As JSON a line is at
/// most six times as long, and fits in [`stderr::ENVOY_LIMIT`].
const LINE_LIMIT: usize = 10 * 1024;
const BUFFER: usize = 8 * 1024;
/// Stack size of the thread: the buffer, and room for the parser of JSON.
const STACK_SIZE: usize = 256 * 1024;
/// Maximum time to wait for the last lines of an Envoy that has exited. A process that Envoy started can
/// keep the pipe open.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// The thread ends when every process has closed its end of the pipe.
#[derive(Debug)]
pub struct LogForwarder {
    ended: CancellationToken,
    /// When the wait for the last lines ends, once it has begun.
    finish_by: Option<Instant>,
}

impl LogForwarder {
    /// Returns the end of a pipe for Envoy's stderr.
    pub fn start() -> io::Result<(PipeWriter, Self)> {
        let (reader, writer) = io::pipe()?;
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let thread = thread::Builder::new().name("envoy-log".to_owned()).stack_size(STACK_SIZE);
        thread.spawn(move || {
            let _guard = guard;
            let mut stall = Stall::default();
            forward(reader, |line| stderr::write_when_read(line.as_bytes(), &mut stall));
        })?;
        Ok((writer, Self { ended, finish_by: None }))
    }

    /// Waits until all lines of an Envoy that has exited are queued. The future is cancel safe.
    pub async fn finish(&mut self) {
        let finish_by = *self.finish_by.get_or_insert_with(|| Instant::now() + FINISH_TIMEOUT);
        // After the timeout another process has the pipe; its lines may still come.
        let _ = timeout_at(finish_by, self.ended.cancelled()).await;
    }
}

/// Calls `write` with each line as JSON until the end of the output.
fn forward(mut output: PipeReader, mut write: impl FnMut(String)) {
    let (mut lines, mut line) = (EnvoyLines::default(), Vec::new());
    let mut buffer = [0; BUFFER];
    loop {
        let length = match output.read(&mut buffer) {
            Ok(length @ 1..) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => break,
        };
        for byte in &buffer[..length] {
            let is_end = *byte == b'\n';
            if !is_end {
                line.push(*byte);
            }
            if is_end || line.len() == LINE_LIMIT {
                lines.convert(&line).into_iter().for_each(&mut write);
                line.clear();
            }
        }
    }
    lines.convert(&line).into_iter().for_each(write);
}

#[cfg(test)]
mod tests;
