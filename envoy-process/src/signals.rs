//! Signals that `run` handles from the construction of [`Signals`] on.

use std::io;

use nix::sys::signal::{SigSet, Signal as SignalName};
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// SIGTERM or SIGINT, which terminates the agent.
    Terminate(SignalName),
    /// SIGUSR2: the agent is restarted. A signal whose default action ends the process also works for
    /// an older agent, which an upgrade replaces.
    Restart,
    /// SIGUSR1, upon which Envoy reopens its log files.
    ReopenLogs,
    /// SIGHUP, which has no effect.
    HangUp,
    /// SIGCHLD: a child process has exited.
    Child,
}

pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    user1: Signal,
    user2: Signal,
    hang_up: Signal,
    child: Signal,
}

impl Signals {
    pub fn new() -> io::Result<Self> {
        // A parent process may have blocked signals. The agent's own child processes inherit the mask too.
        SigSet::all().thread_unblock()?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
            hang_up: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }

    pub async fn next(&mut self) -> Signalled {
        tokio::select! {
            _ = self.interrupt.recv() => Signalled::Terminate(SignalName::SIGINT),
            _ = self.terminate.recv() => Signalled::Terminate(SignalName::SIGTERM),
            _ = self.user1.recv() => Signalled::ReopenLogs,
            _ = self.user2.recv() => Signalled::Restart,
            _ = self.hang_up.recv() => Signalled::HangUp,
            _ = self.child.recv() => Signalled::Child,
        }
    }

    /// Waits for a signal that ends the agent, and calls `reap` whenever a child process has exited.
    pub async fn wait_for_termination(&mut self, reap: impl Fn()) -> SignalName {
        loop {
            match self.next().await {
                Signalled::Terminate(signal) => return signal,
                Signalled::Restart => return SignalName::SIGUSR2,
                Signalled::Child => reap(),
                Signalled::ReopenLogs | Signalled::HangUp => {}
            }
        }
    }
}
