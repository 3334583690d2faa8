//! How the agent ends: exit codes (those of sysexits.h where they have one), one line on stderr, and the same line as the container's
//! termination message, where `kubectl describe` shows it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use thiserror::Error;

use crate::stderr;

/// Where Kubernetes reads a container's last words, unless the Pod says otherwise.
pub const TERMINATION_LOG: &str = "/dev/termination-log";
/// Longest termination message, in bytes. Kubernetes would take 4096, shared with the container's log.
const TERMINATION_MESSAGE_LIMIT: usize = 1024;

/// Why a command did not end as asked. The text is one line that names what was wrong.
#[derive(Debug, Error)]
pub enum Failure {
    /// A flag, a value or the prober table is wrong. Nothing was bound or written.
    #[error("{0}")]
    Usage(String),
    /// A part of the agent that never ends by itself ended: a mistake of ours.
    #[error("{0}")]
    Broken(String),
    /// Envoy ended, and nobody had asked it to.
    #[error("{0}")]
    Ended(String),
    /// `wait`: the sidecar was not ready in time; `drain`, `quit`: no agent, or no answer of it.
    #[error("{0}")]
    Unavailable(String),
    /// The machine refused: port taken, no permission, no descriptors.
    #[error("{0}")]
    Machine(String),
    /// A file or the state directory cannot be written.
    #[error("{0}")]
    CannotWrite(String),
    /// `wait -- cmd`: the file is there and cannot be executed.
    #[error("{0}: cannot be executed")]
    NotExecutable(String),
    /// `wait -- cmd`: there is no such file.
    #[error("{0}: command not found")]
    NotFound(String),
    /// `wait` was ended by this signal: name and number.
    #[error("ended by {0}")]
    Signal(&'static str, u8),
}

impl Failure {
    /// The process' exit code, 1 to 255.
    pub fn code(&self) -> u8 {
        match self {
            Self::Broken(_) => 1,
            Self::Usage(_) => 64,
            Self::Unavailable(_) => 69,
            Self::Ended(_) => 70,
            Self::Machine(_) => 71,
            Self::CannotWrite(_) => 73,
            Self::NotExecutable(_) => 126,
            Self::NotFound(_) => 127,
            Self::Signal(_, number) => 128 + number,
        }
    }
}

/// The end of a command: 0, or the failure's code after its line was written to stderr and to the termination message. That goes to
/// `termination_message`, which is created if need be, or to Kubernetes' own file if that exists.
pub fn of_command(result: Result<(), Failure>, termination_message: Option<&Path>) -> ExitCode {
    let code = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure.to_string(), termination_message);
            ExitCode::from(failure.code())
        }
    };
    stderr::flush();
    code
}

/// The end of a command line that clap did not take: help and version are 0, everything else 64 (clap would say 2).
pub fn of_clap(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Whoever closed stdout does not want to read it.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        say(&one_line(&error.to_string()), None);
        stderr::flush();
    }
    ExitCode::from(64)
}

/// Writes `line` to stderr. A closed one changes nothing, nor one that nobody reads.
pub fn stderr_line(line: &str) {
    stderr::write(format!("app-health-agent: {line}\n").as_bytes());
}

fn say(line: &str, termination_message: Option<&Path>) {
    stderr_line(line);
    let mut end = line.len().min(TERMINATION_MESSAGE_LIMIT);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let file = termination_message.unwrap_or(Path::new(TERMINATION_LOG));
    let opened =
        OpenOptions::new().write(true).truncate(true).create(termination_message.is_some()).open(file);
    // Last words that cannot be left must not hide the exit code.
    let _ = opened.and_then(|mut file| file.write_all(&line.as_bytes()[..end]));
}

/// clap's message without its layout, its usage and its pointer to `--help`.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let words: Vec<&str> = told.filter(|line| !line.is_empty()).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
