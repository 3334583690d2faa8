//! The signals that `run` listens to, from the moment of its making.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// SIGTERM, SIGINT: an end.
    End(&'static str),
    /// SIGUSR1: Envoy shall open its logs again.
    ReopenLogs,
    /// SIGHUP: nothing that the agent could do.
    HangUp,
    /// SIGCHLD: some child has ended.
    Child,
}

/// All of them.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    user1: Signal,
    hang_up: Signal,
    child: Signal,
}

impl Signals {
    /// Fails only if the system has no room for a handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            user1: signal(SignalKind::user_defined1())?,
            hang_up: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }

    /// Returns at the next one.
    pub async fn next(&mut self) -> Signalled {
        tokio::select! {
            _ = self.interrupt.recv() => Signalled::End("SIGINT"),
            _ = self.terminate.recv() => Signalled::End("SIGTERM"),
            _ = self.user1.recv() => Signalled::ReopenLogs,
            _ = self.hang_up.recv() => Signalled::HangUp,
            _ = self.child.recv() => Signalled::Child,
        }
    }

    /// Returns at the next one that asks for an end; `reap` is called whenever a child has ended.
    pub async fn end(&mut self, reap: impl Fn()) {
        loop {
            match self.next().await {
                Signalled::End(_) => return,
                Signalled::Child => reap(),
                Signalled::ReopenLogs | Signalled::HangUp => {}
            }
        }
    }
}
