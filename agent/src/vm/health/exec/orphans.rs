//! Processes that a probe command started and that left its process group, for example with
//! `setsid`. Once their parents have exited they are children of the agent, because it is a child
//! subreaper. A mark in their environment tells them from other children, such as Envoy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid};
use tokio::time::sleep;

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
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.map(Pid::from_raw).filter(|pid| is_child(*pid) && has_mark(*pid, mark)).collect()
}

fn is_child(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may contain spaces. The state and the parent follow.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
    let parent = fields.and_then(|fields| fields.split_whitespace().nth(1)?.parse().ok());
    parent.map(Pid::from_raw) == Some(getpid())
}

fn has_mark(pid: Pid, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let variable = format!("{MARK}={mark}");
    environment.split(|byte| *byte == 0).any(|found| found == variable.as_bytes())
}
