//! `exec` probes: the exit code of a command decides. When the probe ends, everything that the
//! command started is killed and reaped.

mod orphans;

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
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tracing::debug;
use workload_health::text::printable;
use workload_health::{HealthReason, Unhealthy};

use agent_state::awaited_pids::{AwaitedPid, AwaitedPids};

/// Number of bytes of stdout and of stderr that are kept.
const MAX_OUTPUT_BYTES: usize = 1 << 10;
/// Size of the read buffer in bytes.
const READ_BUFFER: usize = 4 << 10;
/// How long to wait until killed processes are reaped.
const REAP_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between two checks whether they are reaped.
const REAP_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Runs the command and evaluates its exit code. The command sees only the variables in
/// `environment`, and [`orphans::MARK`].
pub(super) async fn probe(
    command: &[String],
    environment: &[(&'static str, OsString)],
    awaited_pids: &AwaitedPids,
    limit: Duration,
) -> Result<(), Unhealthy> {
    let cannot = |why: &io::Error| {
        let name = command.first().map_or("", String::as_str);
        Unhealthy::new(HealthReason::CannotRun, &format!("cannot start {name}: {why}"))
    };
    // Orphans of the command are reparented to the agent, because the container's init process may
    // not reap them.
    let _ = set_child_subreaper(true);
    let mut group =
        ProcessGroup::start(command, environment, awaited_pids).map_err(|error| cannot(&error))?;
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exited = {
        // This future never completes: the command may close its outputs before it exits, and a
        // descendant may keep them open afterwards.
        let mut outputs = std::pin::pin!(async {
            tokio::join!(read(stdout, &mut out), read(stderr, &mut err));
            std::future::pending::<Infallible>().await
        });
        let exited = timeout(limit, async {
            tokio::select! {
                exited = group.child.wait() => exited,
                never = &mut outputs => match never {},
            }
        });
        let exited = exited.await;
        group.kill().await;
        // Reads what is already in the pipes.
        let _ = timeout(Duration::ZERO, outputs).await;
        exited
    };
    debug!(stdout = %printable_lines(&out), stderr = %printable_lines(&err), "probe command finished");
    match exited {
        Ok(Ok(status)) => exit_result(status),
        Ok(Err(error)) => Err(cannot(&error)),
        Err(_) => {
            let text = format!("did not exit within {} s", limit.as_secs());
            Err(Unhealthy::new(HealthReason::ExecTimeout, &text))
        }
    }
}

fn exit_result(status: ExitStatus) -> Result<(), Unhealthy> {
    let text = match (status.code(), status.signal().map(Signal::try_from)) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(Ok(signal))) => format!("terminated by {signal}"),
        (None, _) => "terminated by a signal".to_owned(),
    };
    Err(Unhealthy::new(HealthReason::ExecExit, &text))
}

/// The command and everything that it started, killed on drop.
struct ProcessGroup {
    child: Child,
    pid: Pid,
    mark: String,
    _awaited: AwaitedPid,
}

impl ProcessGroup {
    fn start(
        command: &[String],
        environment: &[(&'static str, OsString)],
        awaited_pids: &AwaitedPids,
    ) -> io::Result<Self> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let environment = environment.iter().map(|(name, value)| (name, value));
        let mark = orphans::new_mark();
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(environment).env(orphans::MARK, &mark);
        command.current_dir("/").process_group(0);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = Pid::from_raw(pid.expect("a child that was not waited for has a process ID"));
        Ok(Self { child, pid, mark, _awaited: awaited_pids.register(pid) })
    }

    /// Kills and reaps all processes, and returns after [`REAP_TIMEOUT`] at the latest.
    async fn kill(&mut self) {
        let _ = killpg(self.pid, Signal::SIGKILL);
        let _ = timeout(REAP_TIMEOUT, async {
            let _ = self.child.wait().await;
            reap(self.pid, &self.mark).await;
        })
        .await;
    }
}

/// Waits until the killed process group is reaped, and kills and reaps what has left it.
async fn reap(group: Pid, mark: &str) {
    while !is_reaped(group) {
        sleep(REAP_POLL_INTERVAL).await;
    }
    orphans::kill_all(mark).await;
}

/// Reaps exited processes of the group, which are children of the agent because of
/// [`set_child_subreaper`]. Returns true if none is left.
fn is_reaped(group: Pid) -> bool {
    loop {
        match waitid(Id::PGid(group), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::StillAlive) => return false,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return true,
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The child has no ID once it was waited for; everything is killed by then.
        if self.child.id().is_none() {
            return;
        }
        let _ = killpg(self.pid, Signal::SIGKILL);
        if let Ok(runtime) = Handle::try_current() {
            let (group, mark) = (self.pid, std::mem::take(&mut self.mark));
            runtime.spawn(async move { timeout(REAP_TIMEOUT, reap(group, &mark)).await });
        }
    }
}

/// Reads the output to its end but keeps only the beginning, so that a command with much output
/// neither blocks nor uses much memory.
async fn read(output: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut output) = output else { return };
    let mut chunk = vec![0; READ_BUFFER];
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let room = MAX_OUTPUT_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..room.min(length)]);
    }
}

/// Formats output for the log: at most 20 lines, with every byte outside printable ASCII escaped.
fn printable_lines(output: &[u8]) -> String {
    String::from_utf8_lossy(output).lines().take(20).map(printable).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests;
