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
pub(super) const APP_PROBERS: &str = "ISTIO_KUBE_APP_PROBERS";
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
    /// Its configuration is judged before it starts: what it prints when it refuses one goes to the log, all of it.
    pub judge_first: bool,
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
        let mut command = self.launched();
        command.args(&self.flags).env_remove(APP_PROBERS).stdin(Stdio::null());
        let child = command.process_group(0).spawn()?;
        Ok(EnvoyProcess { pid: pid(&child), child })
    }

    /// The binary and its configuration, without any other flag.
    pub(super) fn launched(&self) -> Command {
        let mut command = match &self.launcher {
            Some(launcher) => {
                let mut command = Command::new(launcher);
                command.arg("launch").arg(std::process::id().to_string()).arg("--").arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        command.args(&self.configuration);
        command
    }
}

pub(super) fn pid(child: &Child) -> Pid {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    Pid::from_raw(pid.expect("a child that was not waited for has a number"))
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

    /// Is anything left of its process group? The end of a script is not that of the Envoy that it started. The kernel gives the
    /// number to nobody else as long as one of the group lives.
    pub fn has_group(&self) -> bool {
        killpg(self.pid, None).is_ok()
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
pub(super) mod tests;
