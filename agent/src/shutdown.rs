//! Signals that terminate a command.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listener for SIGINT and SIGTERM, active from its construction on.
pub struct Shutdown {
    interrupt: Signal,
    terminate: Signal,
}

impl Shutdown {
    /// Fails only if the handlers cannot be registered.
    pub fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal and returns its name and number.
    pub async fn signalled(&mut self) -> (&'static str, u8) {
        tokio::select! {
            _ = self.interrupt.recv() => ("SIGINT", 2),
            _ = self.terminate.recv() => ("SIGTERM", 15),
        }
    }
}
