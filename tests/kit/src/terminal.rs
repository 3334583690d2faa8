//! What the programs of the tests print, and how a signal ends them.

use std::io::Write as _;

use futures_util::future::select_all;
use tokio::signal::unix::{SignalKind, signal};

/// Writes to standard output and ignores a closed terminal.
pub fn say(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Runs `show` to its end or until SIGINT, SIGTERM or SIGHUP arrives, and drops it then.
///
/// # Errors
/// The error of `show`, or a signal handler that cannot be installed.
pub async fn unless_interrupted(
    show: impl Future<Output = Result<bool, String>>,
    once: bool,
) -> Result<bool, String> {
    let mut signals = Vec::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        signals.push(signal(kind).map_err(|error| error.to_string())?);
    }
    let signalled = select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv())));
    tokio::select! {
        right = show => right,
        _ = signalled => Ok(!once),
    }
}
