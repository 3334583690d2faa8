//! How Envoy exited.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    Code(i32),
    Signal(i32),
    Unknown,
}

impl ExitReason {
    pub fn of(status: ExitStatus) -> Self {
        let signal = || status.signal().map_or(Self::Unknown, Self::Signal);
        status.code().map_or_else(signal, Self::Code)
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "with code {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(formatter, "terminated by {signal}"),
                Err(_) => write!(formatter, "terminated by signal {number}"),
            },
            Self::Unknown => formatter.write_str("with unknown status"),
        }
    }
}
