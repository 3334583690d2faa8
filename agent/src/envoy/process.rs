//! Envoy as a process: how it is started, signalled and taken note of when it ends.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::address::LocalAddress;

/// Istio's prober table, which holds header values that are nobody's but the filter's.
const APP_PROBERS: &str = "ISTIO_KUBE_APP_PROBERS";
/// How long Envoy may take to judge a configuration.
const VALIDATE: Duration = Duration::from_secs(10);
/// How much of its words is passed on, in bytes.
const WORDS: usize = 1024;

/// How Envoy is started, the same way each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvoyCommand {
    /// Absolute.
    pub binary: PathBuf,
    /// Starts it by way of the command `launch`.
    pub launcher: Option<PathBuf>,
    /// `-c FILE`, and `--config-yaml` perhaps.
    pub configuration: Vec<OsString>,
    /// All others.
    pub flags: Vec<OsString>,
    /// The admin socket of the one before is removed.
    pub admin: LocalAddress,
}

impl EnvoyCommand {
    /// Flags but for the configuration; `args` are the user's.
    pub fn flags(concurrency: u32, drain_deadline: Duration, args: Vec<OsString>) -> Vec<OsString> {
        let (concurrency, drain) = (concurrency.to_string(), drain_deadline.as_secs().to_string());
        let ours = ["--disable-hot-restart", "--concurrency", &concurrency, "--drain-strategy", "immediate"];
        let ours = ours.into_iter().chain(["--drain-time-s", &drain]);
        ours.map(OsString::from).chain(args).collect()
    }

    /// Starts it in a process group of its own: Ctrl-C in a terminal is for the agent, which drains first.
    pub fn start(&self) -> io::Result<EnvoyProcess> {
        if let LocalAddress::Unix(socket) = &self.admin {
            remove_socket(socket)?;
        }
        let mut command = match &self.launcher {
            Some(launcher) => {
                let mut command = Command::new(launcher);
                command.arg("launch").arg(std::process::id().to_string()).arg("--").arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        command.args(&self.configuration).args(&self.flags);
        let child = command.env_remove(APP_PROBERS).stdin(Stdio::null()).process_group(0).spawn()?;
        Ok(EnvoyProcess { pid: pid(&child), child })
    }

    /// Lets Envoy judge its configuration.
    pub fn validate(&self) -> io::Result<Validation> {
        let mut command = Command::new(&self.binary);
        command.args(&self.configuration).args(["--mode", "validate", "--log-level", "error"]);
        command.env_remove(APP_PROBERS).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.kill_on_drop(true).spawn()?;
        Ok(Validation { pid: pid(&child), child })
    }
}

/// An Envoy that judges its configuration.
#[derive(Debug)]
pub struct Validation {
    child: Child,
    pid: Pid,
}

impl Validation {
    /// Its number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// What Envoy says against it; `None`: nothing, not in time, or it was killed before it could say.
    pub async fn refusal(self) -> Option<String> {
        let output = tokio::time::timeout(VALIDATE, self.child.wait_with_output()).await.ok()?.ok()?;
        let refuses = output.status.code().is_some_and(|code| code != 0);
        refuses.then(|| last_words(&String::from_utf8_lossy(&output.stderr)))
    }
}

fn pid(child: &Child) -> Pid {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    Pid::from_raw(pid.expect("a child that was not waited for has a number"))
}

/// What `envoy --version` says, for [`crate::envoy_version::EnvoyVersion`]: `1.40.0`.
pub fn version(binary: &Path) -> io::Result<Option<String>> {
    let mut command = std::process::Command::new(binary);
    let output = command.arg("--version").env_remove(APP_PROBERS).stdin(Stdio::null()).output()?;
    Ok(version_word(&String::from_utf8_lossy(&output.stdout)))
}

/// `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`.
fn version_word(text: &str) -> Option<String> {
    text.split("version:").nth(1)?.trim().split('/').nth(1).map(str::to_owned)
}

/// The end of a text as one line.
fn last_words(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut room = WORDS;
    for line in text.lines().rev().map(str::trim).filter(|line| !line.is_empty()) {
        let line: String = line.chars().map(|char| if char.is_control() { '?' } else { char }).collect();
        if line.len() + 2 > room {
            if lines.is_empty() {
                lines.push(line.chars().take(WORDS / 4).collect());
            }
            break;
        }
        room -= line.len() + 2;
        lines.push(line);
    }
    lines.reverse();
    lines.join("; ")
}

/// What an Envoy that was killed has left.
fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// An Envoy that was started. Dropped without having been waited for, it is told to end.
#[derive(Debug)]
pub struct EnvoyProcess {
    child: Child,
    pid: Pid,
}

impl EnvoyProcess {
    /// Its number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns when it has ended; may be dropped and called again.
    pub async fn ended(&mut self) -> Ended {
        match self.child.wait().await {
            Ok(status) => Ended::of(status),
            Err(_) => Ended::Unknown,
        }
    }

    /// To its process group, so that one behind a script gets it too.
    pub fn signal(&self, signal: Signal) {
        // One that has ended already needs none.
        let _ = killpg(self.pid, signal);
    }
}

impl Drop for EnvoyProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::SIGTERM);
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By this signal's number.
    Signal(i32),
    /// Nobody can say.
    Unknown,
}

impl Ended {
    fn of(status: ExitStatus) -> Self {
        let signal = || status.signal().map_or(Self::Unknown, Self::Signal);
        status.code().map_or_else(signal, Self::Code)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "with code {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(formatter, "by {signal}"),
                Err(_) => write!(formatter, "by signal {number}"),
            },
            Self::Unknown => formatter.write_str("in an unknown way"),
        }
    }
}

/// Takes the ends of children that nobody else waits for: PID 1 inherits every orphan. First it looks who has ended, and takes only
/// strangers, so that no child's status is stolen from its owner. `own`: children that are waited for elsewhere.
pub fn reap_strangers(own: &[Pid]) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) = waitid(Id::All, look) {
        if own.contains(&pid) || waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_err() {
            // Those behind our own are seen once that has been taken.
            return;
        }
    }
}

#[cfg(test)]
mod tests;
