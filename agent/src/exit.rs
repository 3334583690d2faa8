//! Exit codes (those of sysexits.h where one fits) and the final error line, which goes to stderr
//! and to the container's termination message, where `kubectl describe` shows it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use thiserror::Error;

use crate::stderr;

/// Default `terminationMessagePath` of a container.
pub const TERMINATION_LOG: &str = "/dev/termination-log";
/// Maximum length of the termination message in bytes. Kubernetes accepts up to 4096.
const TERMINATION_MESSAGE_LIMIT: usize = 1024;

/// Reason why a command failed. Its text is one line.
#[derive(Debug, Error)]
pub enum Failure {
    /// A flag, a value or the prober table is invalid. Nothing was bound or written.
    #[error("{0}")]
    Usage(String),
    /// A task of the agent that must not end has ended, which is a bug.
    #[error("{0}")]
    Broken(String),
    /// Envoy exited without a request from the agent.
    #[error("{0}")]
    Ended(String),
    /// `wait`: the sidecar was not ready in time. `drain`, `quit`: the agent was not reachable or
    /// did not answer.
    #[error("{0}")]
    Unavailable(String),
    /// A resource of the operating system is not available: the port is in use, a permission is
    /// missing, or no file descriptors are free.
    #[error("{0}")]
    Machine(String),
    /// A file or the state directory cannot be written.
    #[error("{0}")]
    CannotWrite(String),
    /// `wait -- cmd`: the file exists but is not executable.
    #[error("{0}: cannot be executed")]
    NotExecutable(String),
    /// `wait -- cmd`: the file does not exist.
    #[error("{0}: command not found")]
    NotFound(String),
    /// `wait` was terminated by this signal, given as name and number.
    #[error("terminated by {0}")]
    Signal(&'static str, u8),
}

impl Failure {
    /// Returns the exit code of the process, 1 to 255.
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

/// Converts the result of a command into its exit code. On failure, writes its line to stderr and
/// to the termination message: to `termination_message`, which is created if it does not exist, or
/// to [`TERMINATION_LOG`] if that file exists.
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

/// Handles a command line that clap did not parse: help and version return 0, everything else
/// returns 64 instead of clap's 2.
pub fn of_clap(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed stdout is not an error here.
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

/// Writes `line` to stderr. A closed or blocked stderr has no effect.
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
    // A failure to write the message must not change the exit code.
    let _ = opened.and_then(|mut file| file.write_all(&line.as_bytes()[..end]));
}

/// Returns clap's message without layout, usage and the hint about `--help`.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let words: Vec<&str> = told.filter(|line| !line.is_empty()).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
