//! Signals that shut down the process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handler for SIGINT and SIGTERM, installed when it is created.
pub struct Shutdown {
    interrupt: Signal,
    terminate: Signal,
}

impl Shutdown {
    /// Fails only if the operating system cannot install a handler.
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
