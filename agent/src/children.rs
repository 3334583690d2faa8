//! Children of this process that somebody waits for, so that nobody else takes their ends (see `envoy::process::reap_strangers`).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use nix::unistd::Pid;

/// Their numbers; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Children(Arc<Mutex<BTreeSet<Pid>>>);

/// A child that is waited for as long as this lives.
#[derive(Debug)]
pub struct Awaited(Children, Pid);

impl Children {
    /// To be called before anybody else runs, since the child may have ended already.
    pub fn awaited(&self, pid: Pid) -> Awaited {
        self.set().insert(pid);
        Awaited(self.clone(), pid)
    }

    /// All of them.
    pub fn pids(&self) -> Vec<Pid> {
        self.set().iter().copied().collect()
    }

    fn set(&self) -> MutexGuard<'_, BTreeSet<Pid>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.set().remove(&self.1);
    }
}
