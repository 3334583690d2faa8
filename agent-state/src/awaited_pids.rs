//! The set of child processes that a task waits for, so that `envoy_process::process::reap_orphans` does
//! not collect their exit status first.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use nix::unistd::Pid;

/// Process ids that a task waits for; clones share the set.
#[derive(Debug, Clone, Default)]
pub struct AwaitedPids(Arc<Mutex<BTreeSet<Pid>>>);

/// Guard that keeps a process id in the set until it is dropped.
#[derive(Debug)]
pub struct AwaitedPid(AwaitedPids, Pid);

impl AwaitedPids {
    /// Must be called before any other task runs, because the child may have exited already.
    pub fn register(&self, pid: Pid) -> AwaitedPid {
        self.set().insert(pid);
        AwaitedPid(self.clone(), pid)
    }

    pub fn pids(&self) -> Vec<Pid> {
        self.set().iter().copied().collect()
    }

    fn set(&self) -> MutexGuard<'_, BTreeSet<Pid>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }
}

impl Drop for AwaitedPid {
    fn drop(&mut self) {
        self.0.set().remove(&self.1);
    }
}
