//! How the binary ends: exit codes (those of sysexits.h where they have one) and lines on stderr.

use std::io::Write;
use std::process::ExitCode;

use thiserror::Error;

/// Why a command did not end as asked; a line each.
#[derive(Debug, Error)]
pub enum Failure {
    /// `--diff`: something would change. Says nothing more.
    #[error("")]
    Differs,
    /// A flag or a value is wrong.
    #[error("{0}")]
    Usage(String),
    /// Inputs are refused.
    #[error("{0}")]
    Data(String),
    /// A file cannot be read.
    #[error("{0}")]
    CannotRead(String),
    /// The cluster or its API server does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// A part that never ends by itself ended: a mistake of ours.
    #[error("{0}")]
    Broken(String),
    /// The machine refused: port taken, no permission.
    #[error("{0}")]
    Machine(String),
    /// A file cannot be written.
    #[error("{0}")]
    CannotWrite(String),
    /// Template or settings are refused.
    #[error("{0}")]
    Settings(String),
}

impl Failure {
    /// The process' exit code, 1 to 255.
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

/// The end of a command: 0, or the failure's code after its lines were written to stderr.
pub fn of_command(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    for line in failure.to_string().lines() {
        stderr_line(line);
    }
    ExitCode::from(failure.code())
}

/// The end of a command line that clap did not take: help and version are 0, everything else 64 (clap would say 2).
pub fn of_clap(error: &clap::Error) -> ExitCode {
    // Whoever closed the stream does not want to read it.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(64) } else { ExitCode::SUCCESS }
}

/// Writes `line` to stderr. A closed stderr changes nothing.
pub fn stderr_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "app-health: {line}");
}
