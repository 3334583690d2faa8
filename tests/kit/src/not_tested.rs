//! Reports what this machine cannot test, so that it is visible in the output of every test run.

use std::io::Write as _;

/// Reports on stderr, bypassing the capture of test output, that `what` is not tested, and why.
///
/// # Panics
/// If stderr is closed.
pub fn say(what: &str, why: &str) {
    let line = format!("NOT TESTED: {what}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}
