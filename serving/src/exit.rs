//! Exit codes of the binary (those of sysexits.h if there is one) and messages on stderr.

use std::io::Write;
use std::process::ExitCode;

use thiserror::Error;

/// Why a command failed, in one or more lines.
#[derive(Debug, Error)]
pub enum Failure {
    /// `--diff` found changes. There is no message.
    #[error("")]
    Differs,
    /// A flag or its value is invalid.
    #[error("{0}")]
    Usage(String),
    /// The input is invalid.
    #[error("{0}")]
    Data(String),
    #[error("{0}")]
    CannotRead(String),
    /// The cluster or its API server does not respond.
    #[error("{0}")]
    Unavailable(String),
    /// A task that should run forever has ended, which is a bug.
    #[error("{0}")]
    Broken(String),
    /// The operating system returned an error, such as an address in use or a missing permission.
    #[error("{0}")]
    Machine(String),
    #[error("{0}")]
    CannotWrite(String),
    /// The template or a setting is invalid.
    #[error("{0}")]
    Settings(String),
}

impl Failure {
    /// Returns the exit code of the process, 1 to 255.
    pub fn code(&self) -> u8 {
        match self {
            Self::Differs => 1,
            Self::Usage(_) => 64,
            Self::Data(_) => 65,
            Self::CannotRead(_) => 66,
            Self::Unavailable(_) => 69,
            Self::Broken(_) => 70,
            Self::Machine(_) => 71,
            Self::CannotWrite(_) => 73,
            Self::Settings(_) => 78,
        }
    }
}

/// Returns the exit code of a command, after writing the lines of a failure to stderr.
pub fn of_command(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    for line in failure.to_string().lines() {
        stderr_line(line);
    }
    ExitCode::from(failure.code())
}

/// Returns the exit code for a command line that clap did not accept: 0 for help and version,
/// otherwise 64 (clap itself uses 2).
pub fn of_clap(error: &clap::Error) -> ExitCode {
    // Ignores errors: the stream may be closed.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(64) } else { ExitCode::SUCCESS }
}

/// Writes `line` to stderr; errors are ignored.
pub fn stderr_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "app-health: {line}");
}
