//! `exec`: a command whose exit code decides. It has a process group of its own, of which nothing is left when the probe is over.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tracing::debug;
use workload_health::health_report::printable;
use workload_health::{HealthReason, Unhealthy};

use crate::children::{Awaited, Children};

/// What is kept of each output, in bytes.
const OUTPUT: usize = 1 << 10;
/// What is read of it at once.
const CHUNK: usize = 4 << 10;
/// What the kernel gets to take killed processes away.
const KILLED: Duration = Duration::from_secs(1);
/// Between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(2);

/// Runs the command. `environment` is all that it sees of ours.
pub(super) async fn probe(
    command: &[String],
    environment: &[(&'static str, OsString)],
    children: &Children,
    limit: Duration,
) -> Result<(), Unhealthy> {
    let cannot = |why: &io::Error| {
        let name = command.first().map_or("", String::as_str);
        Unhealthy::new(HealthReason::CannotRun, &format!("cannot start {name}: {why}"))
    };
    // What the command leaves behind becomes ours, and not that of an init that may not care.
    let _ = set_child_subreaper(true);
    let mut group = Group::start(command, environment, children).map_err(|error| cannot(&error))?;
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = {
        // Never ends by itself: the end of the outputs is not the end of the command, nor the other way round.
        let mut outputs = std::pin::pin!(async {
            tokio::join!(read(stdout, &mut out), read(stderr, &mut err));
            std::future::pending::<Infallible>().await
        });
        let ended = timeout(limit, async {
            tokio::select! {
                ended = group.child.wait() => ended,
                never = &mut outputs => match never {},
            }
        });
        let ended = ended.await;
        group.kill().await;
        // What stands in the pipes already.
        let _ = timeout(Duration::ZERO, outputs).await;
        ended
    };
    debug!(stdout = %shown(&out), stderr = %shown(&err), "output of the probe");
    match ended {
        Ok(Ok(status)) => verdict(status),
        Ok(Err(error)) => Err(cannot(&error)),
        Err(_) => {
            let text = format!("no exit within {} s", limit.as_secs());
            Err(Unhealthy::new(HealthReason::ExecTimeout, &text))
        }
    }
}

fn verdict(status: ExitStatus) -> Result<(), Unhealthy> {
    let text = match (status.code(), status.signal().map(Signal::try_from)) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(Ok(signal))) => format!("ended by {signal}"),
        (None, _) => "ended by a signal".to_owned(),
    };
    Err(Unhealthy::new(HealthReason::ExecExit, &text))
}

/// The command and whatever it starts; killed when this is dropped.
struct Group {
    child: Child,
    pid: Pid,
    _awaited: Awaited,
}

impl Group {
    fn start(
        command: &[String],
        environment: &[(&'static str, OsString)],
        children: &Children,
    ) -> io::Result<Self> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let environment = environment.iter().map(|(name, value)| (name, value));
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(environment).current_dir("/").process_group(0);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = Pid::from_raw(pid.expect("a child that was not waited for has a number"));
        Ok(Self { child, pid, _awaited: children.awaited(pid) })
    }

    /// Ends what is left, and waits until it is gone, but not for ever.
    async fn kill(&mut self) {
        let _ = killpg(self.pid, Signal::SIGKILL);
        let _ = timeout(KILLED, async {
            let _ = self.child.wait().await;
            while !self.is_reaped() {
                sleep(PAUSE).await;
            }
        })
        .await;
    }

    /// Takes the ends of orphans of the group; those that ended are ours since [`set_child_subreaper`].
    fn is_reaped(&self) -> bool {
        loop {
            match waitid(Id::PGid(self.pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
                Ok(WaitStatus::StillAlive) => return false,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return true,
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once it has been waited for there is nothing left of it.
        if self.child.id().is_some() {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
    }
}

/// Reads to the end, keeps the beginning, so that a command that says much neither waits nor costs memory.
async fn read(output: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut output) = output else { return };
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let room = OUTPUT.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..room.min(length)]);
    }
}

/// A kibibyte of it has at most four lines of what may be told of a stranger's words.
fn shown(output: &[u8]) -> String {
    String::from_utf8_lossy(output).lines().take(20).map(printable).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests;
