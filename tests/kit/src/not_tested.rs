//! What this machine cannot test has to be seen by whoever reads the test run.

use std::io::Write as _;

/// Says past the capture of test output that `what` is not tested, and why.
///
/// # Panics
/// When stderr is closed.
pub fn say(what: &str, why: &str) {
    let line = format!("NOT TESTED: {what}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}
