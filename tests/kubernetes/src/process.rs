//! A process that ends with its owner.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// Returns a command for a program that is killed when the thread that starts it ends, because
/// values in statics are never dropped.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// A process that is killed on drop.
pub struct Process(Child);

impl Process {
    /// Starts a process from this thread, whose namespaces it shares. Its output is appended to
    /// `log`, so that a restarted process continues the log.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::options().append(true).create(true).open(log).expect("a log");
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Sends a signal to the process.
    ///
    /// # Panics
    /// If the process has exited.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the process runs");
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).expect("a process id"))
    }

    /// Returns whether the process has exited. A later [`Process::wait`] still returns its exit
    /// code.
    ///
    /// # Panics
    /// If the process was waited for before.
    pub fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags).expect("the process is a child of this one")
            != WaitStatus::StillAlive
    }

    /// Waits until the process has exited and returns the exit code; `None` for a signal.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("the process can be waited for").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if the process has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
