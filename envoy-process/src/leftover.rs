//! Ends an Envoy that a previous agent left behind. Envoy gets a signal when its agent exits, but
//! the kernel cancels this for an executable with file capabilities, and a script can ignore the signal.
//! Such an Envoy keeps its ports, next to the new one. So `launch` records each Envoy in the state
//! directory before it executes it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use agent_output::exit::Failure;
use agent_output::output;
use agent_state::proc_stat::ProcStat;

/// Time for the Envoy to exit after SIGTERM, and after SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(3);
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum size of a record in bytes; a path has at most 4 KiB, written as numbers of up to 4 bytes.
const MAX_SIZE: u64 = 64 * 1024;

/// An Envoy, or the script that starts it, and its agent. A process is identified by its id together with
/// its start time, because ids are reused.
#[derive(Debug, Serialize, Deserialize)]
pub struct EnvoyRecord {
    /// Process ids and start times are those of this boot and this namespace.
    scope: Scope,
    agent: ProcessIdentity,
    /// The leader of Envoy's process group.
    envoy: ProcessIdentity,
    /// The first arguments of Envoy: `-c` and the file.
    arguments: Vec<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Scope {
    boot_id: String,
    pid_namespace: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ProcessIdentity {
    pid: i32,
    /// In clock ticks since the boot, as in `/proc/PID/stat`.
    start_time: u64,
}

/// Records that this process will execute Envoy.
pub fn record(file: &Path, agent: i32, command: &[OsString]) -> io::Result<()> {
    let record = EnvoyRecord {
        scope: Scope::current()?,
        agent: ProcessIdentity::of(agent)?,
        envoy: ProcessIdentity::of(nix::unistd::getpid().as_raw())?,
        arguments: command.iter().skip(1).take(2).map(|word| word.as_bytes().to_vec()).collect(),
    };
    output::replace(file, &serde_json::to_vec(&record)?)
}

/// Ends the Envoy that `file` records, if it still runs without its agent. With `is_exclusive`, a running
/// agent is an error: two agents cannot have one state directory.
pub async fn end(file: &Path, is_exclusive: bool) -> Result<(), Failure> {
    let Some(record) = EnvoyRecord::read(file) else { return Ok(()) };
    if !Scope::current().is_ok_and(|scope| scope == record.scope) || !record.is_running() {
        return Ok(());
    }
    let (envoy, agent) = (record.envoy.pid, record.agent.pid);
    if record.agent.is_running() {
        return match is_exclusive {
            true => Err(Failure::Os(format!(
                "the state directory is in use: the agent with process id {agent} runs the Envoy {envoy}; set \
                 --state-dir to another directory, or stop that agent ({})",
                file.display()
            ))),
            false => Ok(()),
        };
    }
    warn!(pid = envoy, agent, "envoy of an agent that was killed still runs, ending it");
    for (signal, limit) in [(Signal::SIGTERM, TERM_TIMEOUT), (Signal::SIGKILL, KILL_TIMEOUT)] {
        match killpg(Pid::from_raw(envoy), signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => return Err(not_ended(envoy, file, error.desc())),
        }
        let deadline = Instant::now() + limit;
        while record.is_running() && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
        }
        if !record.is_running() {
            info!(pid = envoy, %signal, "envoy of a killed agent ended");
            return Ok(());
        }
    }
    Err(not_ended(envoy, file, "it does not exit"))
}

fn not_ended(pid: i32, file: &Path, why: &str) -> Failure {
    Failure::Os(format!(
        "Envoy with process id {pid}, which another agent started, still runs and cannot be ended: {why}; it would \
         share the ports with a new one. End it with `kill {pid}`, or remove {} if it is no Envoy of this agent",
        file.display()
    ))
}

impl EnvoyRecord {
    /// Returns `None` if the file is missing or was written by another program.
    fn read(file: &Path) -> Option<Self> {
        // To open a FIFO would block, and to read a device would not end.
        let is_readable = fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= MAX_SIZE);
        Self::parse(&is_readable.then(|| fs::read(file).ok()).flatten()?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(text).ok()?;
        // 0 and 1 mean other processes in a call of killpg.
        (record.envoy.pid > 1).then_some(record)
    }

    /// Returns true if a process of Envoy's group runs. A script may have exited before the Envoy that it
    /// started; the kernel does not reuse an id while there is a group with it. If the group is another
    /// one, with the same id, its processes do not have Envoy's arguments.
    fn is_running(&self) -> bool {
        match ProcStat::of(self.envoy.pid) {
            Some(leader) if leader.start_time != self.envoy.start_time => false,
            Some(leader) if !leader.is_zombie() => true,
            leader => {
                let is_known = leader.is_some();
                ProcStat::all().any(|(pid, stat)| {
                    let is_member =
                        stat.group == self.envoy.pid && pid != self.envoy.pid && !stat.is_zombie();
                    is_member && (is_known || self.has_arguments(pid))
                })
            }
        }
    }

    fn has_arguments(&self, pid: i32) -> bool {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        !self.arguments.is_empty() && words.windows(self.arguments.len()).any(|some| some == self.arguments)
    }
}

impl Scope {
    fn current() -> io::Result<Self> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Self { boot_id, pid_namespace: fs::read_link("/proc/self/ns/pid")? })
    }
}

impl ProcessIdentity {
    fn of(pid: i32) -> io::Result<Self> {
        let stat = ProcStat::of(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, start_time: stat.start_time })
    }

    fn is_running(self) -> bool {
        ProcStat::of(self.pid).is_some_and(|stat| stat.start_time == self.start_time && !stat.is_zombie())
    }
}

#[cfg(test)]
mod tests;
