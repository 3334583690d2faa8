//! Extracts the reason from the output of an Envoy that rejects its configuration. One line is the
//! reason; it may be followed by the whole configuration, whose header values must not be logged.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes that are kept of the start of the output, and of its end.
const KEEP_BYTES: usize = 16 * 1024;
const MAX_MESSAGE_BYTES: usize = 1024;
/// Text before the reason: `error initializing configuration 'FILE': `.
const INITIALIZING: &str = "error initializing configuration '";
/// Start of a configuration in protobuf's debug format.
const DUMP: &str = "goo.gle/debug";
/// Text before the reason if Envoy printed a configuration first.
const AFTER_DUMP: &str = ": ";

#[derive(Debug, Default)]
pub(super) struct CapturedOutput {
    beginning: Vec<u8>,
    /// Bytes after `beginning`, at most twice [`KEEP_BYTES`].
    end: Vec<u8>,
    truncated: bool,
}

impl CapturedOutput {
    /// Reads until the end of the output or until an error.
    pub(super) async fn of(mut output: impl AsyncRead + Unpin) -> Self {
        let mut captured = Self::default();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut buffer).await {
            captured.push(&buffer[..length]);
        }
        captured
    }

    fn push(&mut self, bytes: &[u8]) {
        let (beginning, rest) = bytes.split_at(bytes.len().min(KEEP_BYTES - self.beginning.len()));
        self.beginning.extend_from_slice(beginning);
        self.end.extend_from_slice(rest);
        if self.end.len() > 2 * KEEP_BYTES {
            self.end.drain(..self.end.len() - KEEP_BYTES);
            self.truncated = true;
        }
    }

    /// Returns the reason as one line; `None` means that there was no output.
    pub(super) fn error_message(&self) -> Option<String> {
        let (beginning, end) = (String::from_utf8_lossy(&self.beginning), String::from_utf8_lossy(&self.end));
        if self.truncated {
            // The lines next to the gap are incomplete.
            let beginning = beginning.rsplit_once('\n').map_or(&*beginning, |(whole, _)| whole);
            let end = end.split_once('\n').map_or("", |(_, whole)| whole);
            error_message(&format!("{beginning}\n{end}"))
        } else {
            error_message(&[beginning, end].concat())
        }
    }
}

fn error_message(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let reason = match text.split_once(INITIALIZING) {
        None => {
            // For invalid flags Envoy prints two lines, the second one indented.
            let first = lines.next()?.trim();
            match lines.next().filter(|line| line.starts_with(' ')) {
                Some(second) => format!("{first}; {}", second.trim()),
                None => first.to_owned(),
            }
        }
        Some((_, message)) => {
            let message = message.split_once("': ").map_or(message, |(_, reason)| reason);
            let first = message.lines().next().unwrap_or_default().trim();
            if first.starts_with(DUMP) {
                message
                    .lines()
                    .rev()
                    .find_map(|line| line.strip_prefix(AFTER_DUMP))
                    .unwrap_or("no reason given")
                    .to_owned()
            } else {
                first.to_owned()
            }
        }
    };
    Some(one_line(&reason))
}

fn one_line(text: &str) -> String {
    let mut line: String = text.chars().map(|char| if char.is_control() { '?' } else { char }).collect();
    line.truncate(line.floor_char_boundary(MAX_MESSAGE_BYTES));
    line
}

#[cfg(test)]
mod tests;
