//! Runs short-lived Envoy processes that print the version or validate the configuration. Each has
//! a timeout and a bounded output, and its process group is killed at the end.

mod validation_error;

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use super::process::{APP_PROBERS_ENV, EnvoyCommand, pid};
use crate::exec_with_pdeathsig;
use agent_state::exit_reason::ExitReason;
use validation_error::CapturedOutput;

const VERSION_LIMIT: u64 = 64 * 1024;
const VALIDATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Time to read what a killed process has printed.
const REST_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the version of Envoy is unknown.
#[derive(Debug, Error)]
pub enum VersionError {
    #[error("{0}")]
    NotStarted(io::Error),
    #[error("--version did not finish within {} s{}", .limit.as_secs(), printed(.stderr))]
    TimedOut { limit: Duration, stderr: Option<String> },
    /// The process exited without a version on its stdout.
    #[error("--version printed no version and exited {reason}{}", printed(.stderr))]
    NoVersion { reason: ExitReason, stderr: Option<String> },
}

fn printed(stderr: &Option<String>) -> String {
    stderr.as_ref().map_or_else(String::new, |line| format!(": {line}"))
}

/// Returns the version that `envoy --version` prints, such as `1.40.0`, for
/// [`envoy_bootstrap::envoy_version::EnvoyVersion`]. The process is killed after `limit`.
pub async fn version(binary: &Path, limit: Duration) -> Result<String, VersionError> {
    let mut command = Command::new(binary);
    let command = command.arg("--version").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = OneShotProcess::start(command).map_err(VersionError::NotStarted)?;
    let (stdout, stderr) = (process.child.stdout.take(), process.child.stderr.take());
    let printed = async move {
        let mut version = Vec::new();
        let read_version = async {
            if let Some(stdout) = stdout {
                // An error ends the output, as its end does.
                let _ = stdout.take(VERSION_LIMIT).read_to_end(&mut version).await;
            }
        };
        let (_, message) = tokio::join!(read_version, error_message(stderr));
        (version_word(&String::from_utf8_lossy(&version)), message)
    };
    let mut printed = std::pin::pin!(printed);
    let finished = timeout(limit, async { tokio::join!(&mut printed, process.wait()) }).await;
    let Ok(((version, stderr), status)) = finished else {
        process.kill();
        let rest = timeout(REST_TIMEOUT, printed).await.ok();
        return Err(VersionError::TimedOut { limit, stderr: rest.and_then(|(_, stderr)| stderr) });
    };
    let reason = status.map_or(ExitReason::Unknown, ExitReason::of);
    version.ok_or(VersionError::NoVersion { reason, stderr })
}

/// Returns the reason that the process printed to stderr, as one line.
async fn error_message(stderr: Option<ChildStderr>) -> Option<String> {
    CapturedOutput::of(stderr?).await.error_message()
}

/// Extracts the version from `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`.
fn version_word(text: &str) -> Option<String> {
    text.split("version:").nth(1)?.trim().split('/').nth(1).map(str::to_owned)
}

#[derive(Debug)]
pub struct Validation(OneShotProcess);

impl Validation {
    /// Starts Envoy in the mode `validate` with the configuration of `command`. Its output is
    /// captured and is not forwarded to the log.
    pub fn start(command: &EnvoyCommand) -> io::Result<Self> {
        let flags = flags(&command.flags);
        let mut command = command.base_command();
        command.args(flags).args(["--mode", "validate", "--log-level", "error"]);
        OneShotProcess::start(command.stdout(Stdio::null()).stderr(Stdio::piped())).map(Self)
    }

    pub fn pid(&self) -> Pid {
        self.0.pid
    }

    /// Returns Envoy's error message. `None` means that the configuration is valid, that the
    /// validation timed out, or that Envoy was killed.
    pub async fn error(self) -> Option<String> {
        let Self(mut process) = self;
        let message = error_message(process.child.stderr.take());
        let (message, status) =
            timeout(VALIDATION_TIMEOUT, async { tokio::join!(message, process.wait()) }).await.ok()?;
        match status.ok()?.code()? {
            0 => None,
            code if code == i32::from(exec_with_pdeathsig::NOT_STARTED) => None,
            code => {
                Some(message.unwrap_or_else(|| format!("it exited with code {code} and printed nothing")))
            }
        }
    }
}

/// Removes the log level flags: the validation sets the level itself, and Envoy rejects a repeated
/// flag.
fn flags(flags: &[std::ffi::OsString]) -> Vec<&std::ffi::OsString> {
    let mut kept = Vec::new();
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        match flag.to_string_lossy().as_ref() {
            "-l" | "--log-level" | "--component-log-level" => {
                flags.next();
            }
            flag if ["--log-level=", "--component-log-level="].iter().any(|name| flag.starts_with(name)) => {}
            short if short.starts_with("-l") => {}
            _ => kept.push(flag),
        }
    }
    kept
}

/// Child process in a separate process group, which is killed on drop.
#[derive(Debug)]
struct OneShotProcess {
    child: Child,
    pid: Pid,
}

impl OneShotProcess {
    fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.env_remove(APP_PROBERS_ENV).stdin(Stdio::null()).process_group(0).spawn()?;
        Ok(Self { pid: pid(&child), child })
    }

    /// Waits until the process exits, then kills the rest of its group, which could hold a pipe
    /// open.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill();
        status
    }

    fn kill(&self) {
        // A group that does not exist any more needs no signal.
        let _ = killpg(self.pid, Signal::SIGKILL);
    }
}

impl Drop for OneShotProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests;
