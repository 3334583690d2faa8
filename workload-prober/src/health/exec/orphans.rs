//! Processes that a probe command started and that left its process group, for example with
//! `setsid`. Once their parents have exited they are children of the agent, because it is a child
//! subreaper. A mark in their environment tells them from other children, such as Envoy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid};
use tokio::time::sleep;

use agent_state::proc_stat::ProcStat;

/// Environment variable with the mark.
pub(super) const MARK: &str = "APP_HEALTH_PROBE";
/// Interval between two searches.
const INTERVAL: Duration = Duration::from_millis(2);

/// Returns a value of [`MARK`] that no other probe of this machine has.
pub(super) fn new_mark() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", getpid(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Kills and reaps the marked children of this process until none is left: each of them may have
/// children, which are reparented when it exits.
pub(super) async fn kill_all(mark: &str) {
    loop {
        let marked = marked_children(mark);
        if marked.is_empty() {
            return;
        }
        for pid in &marked {
            let _ = kill(*pid, Signal::SIGKILL);
        }
        for pid in marked {
            while matches!(waitpid(pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
                sleep(INTERVAL).await;
            }
        }
    }
}

fn marked_children(mark: &str) -> Vec<Pid> {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    if waitid(Id::All, look).is_err() {
        return Vec::new(); // There are no children at all, which is the usual case.
    }
    let own = getpid().as_raw();
    let children = ProcStat::all().filter(|(_, stat)| stat.parent == own);
    children.map(|(pid, _)| Pid::from_raw(pid)).filter(|pid| has_mark(*pid, mark)).collect()
}

fn has_mark(pid: Pid, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let variable = format!("{MARK}={mark}");
    environment.split(|byte| *byte == 0).any(|found| found == variable.as_bytes())
}
