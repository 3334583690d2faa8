//! Starts and signals Envoy processes and collects their exit status.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::log_forwarder::LogForwarder;
use address::LocalAddress;
use agent_output::log::LogFormat;
use agent_state::exit_reason::ExitReason;
use agent_state::metrics::Metrics;

/// Environment variable with Istio's prober table. Envoy does not inherit it, because its header
/// values are for the filter only.
pub(super) const APP_PROBERS_ENV: &str = "ISTIO_KUBE_APP_PROBERS";
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvoyCommand {
    pub binary: PathBuf,
    /// Executable whose hidden command `launch` starts Envoy.
    pub launcher: Option<PathBuf>,
    /// File in which `launcher` records the process; `None` if there is no directory for it.
    pub record: Option<PathBuf>,
    /// `-c FILE`, optionally with `--config-yaml`.
    pub configuration: Vec<OsString>,
    pub flags: Vec<OsString>,
    /// True if the configuration is validated before the start, because Envoy prints all of an
    /// invalid configuration to the log.
    pub validate_first: bool,
    /// Format in which the agent writes the lines of Envoy's stderr.
    pub log_format: LogFormat,
    /// Admin address; a stale Unix socket at this address is removed before the start.
    pub admin: LocalAddress,
}

impl EnvoyCommand {
    /// Returns the flags other than the configuration; `args` are the user's.
    pub fn flags(concurrency: u32, drain_deadline: Duration, args: Vec<OsString>) -> Vec<OsString> {
        let (concurrency, drain) = (concurrency.to_string(), drain_deadline.as_secs().to_string());
        let ours = ["--disable-hot-restart", "--concurrency", &concurrency, "--drain-strategy", "immediate"];
        let ours = ours.into_iter().chain(["--drain-time-s", &drain]);
        ours.map(OsString::from).chain(args).collect()
    }

    /// Starts Envoy in a separate process group, so that Ctrl-C in a terminal reaches only the
    /// agent, which drains first.
    pub fn start(&self, metrics: &Arc<Metrics>) -> io::Result<EnvoyProcess> {
        if let LocalAddress::Unix(socket) = &self.admin {
            remove_socket(socket)?;
        }
        let mut command = self.command(self.record.as_deref());
        command.args(&self.flags).env_remove(APP_PROBERS_ENV).stdin(Stdio::null());
        let (writer, log) = LogForwarder::start(self.log_format, metrics.clone())?;
        command.stderr(writer);
        let child = command.process_group(0).spawn()?;
        Ok(EnvoyProcess { pid: pid(&child), child, log })
    }

    /// Returns the command with the configuration and without any other flag.
    pub(super) fn base_command(&self) -> Command {
        self.command(None)
    }

    fn command(&self, record: Option<&Path>) -> Command {
        let mut command = match &self.launcher {
            Some(launcher) => {
                let mut command = Command::new(launcher);
                command.arg("launch").arg(std::process::id().to_string());
                command.args(record).arg("--").arg(&self.binary);
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
    Pid::from_raw(pid.expect("a child that was not waited for has a process id"))
}

/// Removes the socket that a killed Envoy left behind.
fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Running Envoy process. It receives SIGTERM if it is dropped before it was waited for.
#[derive(Debug)]
pub struct EnvoyProcess {
    child: Child,
    pid: Pid,
    log: LogForwarder,
}

impl EnvoyProcess {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until the process exits and its last lines are logged. The future is cancel safe.
    pub async fn wait(&mut self) -> ExitReason {
        let status = self.child.wait().await;
        self.log.finish().await;
        match status {
            Ok(status) => ExitReason::of(status),
            Err(_) => ExitReason::Unknown,
        }
    }

    /// Sends `signal` to the process group, so that it also reaches an Envoy that a script started.
    pub fn signal(&self, signal: Signal) {
        // A process that has already exited needs no signal.
        let _ = killpg(self.pid, signal);
    }

    /// Returns true if the process group is not empty: a script may exit before the Envoy that it
    /// started. The kernel does not reuse the id while the group exists.
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

/// Reaps child processes that no task waits for; process 1 inherits every orphan. It first looks up
/// which child has exited and reaps only children that are not in `own`, so that it never takes the
/// exit status of a child that another task waits for.
pub fn reap_orphans(own: &[Pid]) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) = waitid(Id::All, look) {
        if own.contains(&pid) || waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_err() {
            // The children behind an own one are visible only after that one was reaped.
            return;
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
