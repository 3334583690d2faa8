//! Decides what this machine can test, and reports what it cannot, so that this is visible in the
//! output of every test run. Where the prerequisites are met, every failure fails the test. In CI and
//! for a release, a missing prerequisite fails it too.

use std::io::Write as _;

use nix::unistd::geteuid;

use crate::container_tools::find;

/// If this environment variable is set, a test that cannot run fails.
const EVERYTHING: &str = "APP_HEALTH_TEST_EVERYTHING";

/// Returns true if this process is root and finds every program in `CONTAINER_TOOLS` or on the
/// PATH. Otherwise it reports that `what` is not tested.
pub fn has_root_and(what: &str, programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| find(program).is_none());
    match (geteuid().is_root(), missing) {
        (false, _) => report(what, "needs root"),
        (true, Some(program)) => report(what, &format!("needs the program `{program}`")),
        (true, None) => return true,
    }
    false
}

/// Reports on stderr, bypassing the capture of test output, that `what` is not tested, and why.
///
/// # Panics
/// If everything must be tested, or if stderr is closed.
pub fn report(what: &str, why: &str) {
    let line = format!("NOT TESTED: {what}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
    assert!(
        std::env::var_os(EVERYTHING).is_none(),
        "{EVERYTHING} is set, but {what} cannot be tested: {why}"
    );
}
