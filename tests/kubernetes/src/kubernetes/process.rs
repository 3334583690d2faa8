//! A process that ends with its owner.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// A command of a program that is killed when the thread that starts it ends, in whatever way: what a static holds is never dropped.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// A process that is killed when it is dropped.
pub struct Process(Child);

impl Process {
    /// Starts it from this thread, whose namespaces it shares. What it says goes to `log`, behind what is there: a second life
    /// continues the log of the first.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::options().append(true).create(true).open(log).expect("a log");
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When it has ended.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("it runs");
    }

    /// Its number.
    ///
    /// # Panics
    /// Never.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).expect("a process id"))
    }

    /// Has it ended by itself? Whoever waits for it is told its exit code all the same.
    ///
    /// # Panics
    /// When it was waited for before.
    pub fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags).expect("a child of ours") != WaitStatus::StillAlive
    }

    /// Waits for its end: the exit code; `None` for a signal.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
