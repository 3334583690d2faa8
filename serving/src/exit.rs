//! Why a command failed, and its exit code: that of sysexits.h if one fits.

use thiserror::Error;

/// Why a command failed, in one or more lines.
#[derive(Debug, Error)]
pub enum Failure {
    /// The failure that the command defines as its own: `run` has a bug, `--diff` found changes.
    #[error("{0}")]
    General(String),
    /// A flag, an environment variable or its value is invalid. Nothing was bound or written.
    #[error("{0}")]
    Usage(String),
    /// The input is invalid.
    #[error("{0}")]
    Data(String),
    #[error("{0}")]
    CannotRead(String),
    /// Another process is not reachable or does not respond: the agent, the sidecar, the API server.
    #[error("{0}")]
    Unavailable(String),
    /// A part of the program ended that must not: Envoy, or a task, which is a bug.
    #[error("{0}")]
    Software(String),
    /// A resource of the operating system is not available: the port is in use, a permission is
    /// missing, or no file descriptors are free.
    #[error("{0}")]
    Os(String),
    #[error("{0}")]
    CannotWrite(String),
    /// The template or a setting is invalid.
    #[error("{0}")]
    Settings(String),
    /// The file exists but is not executable.
    #[error("{0}: cannot be executed")]
    NotExecutable(String),
    #[error("{0}: command not found")]
    NotFound(String),
    /// The command was terminated by this signal, given as name and number.
    #[error("terminated by {0}")]
    Signal(&'static str, u8),
    /// The signal with this number stopped the command before it had fulfilled its purpose.
    #[error("{0}")]
    Interrupted(String, u8),
}

impl Failure {
    /// Returns the exit code of the process, 1 to 255.
    pub fn code(&self) -> u8 {
        match self {
            Self::General(_) => 1,
            Self::Usage(_) => 64,
            Self::Data(_) => 65,
            Self::CannotRead(_) => 66,
            Self::Unavailable(_) => 69,
            Self::Software(_) => 70,
            Self::Os(_) => 71,
            Self::CannotWrite(_) => 73,
            Self::Settings(_) => 78,
            Self::NotExecutable(_) => 126,
            Self::NotFound(_) => 127,
            Self::Signal(_, number) | Self::Interrupted(_, number) => 128 + number,
        }
    }
}

#[cfg(test)]
mod tests;
