//! What `--version` prints: the build, and what it was tested with.

use std::fmt::Write as _;

/// Versions of Envoy that the tests run, the newest first. They are those of `justw`.
pub const TESTED_ENVOY: [&str; 2] = ["1.40.0", "1.39.1"];
/// Versions of Kubernetes whose API server and kubelet the tests run. They are those of the Justfile.
pub const TESTED_KUBERNETES: [&str; 1] = ["1.36.3"];

/// Returns what clap prints after the program's name for `--version`: the version, which ends the first
/// line, then one line for each fact. `facts` are those that only this program has.
pub fn long(version: &str, commit: &str, facts: &[(&str, &str)]) -> String {
    let (envoy, kubernetes) = (TESTED_ENVOY.join(", "), TESTED_KUBERNETES.join(", "));
    let before = [("commit", commit)];
    let after = [("tested with Envoy", envoy.as_str()), ("tested with Kubernetes", kubernetes.as_str())];
    let mut text = version.to_owned();
    for (name, value) in before.iter().chain(facts).chain(&after) {
        let _ = write!(text, "\n{name}: {value}");
    }
    text
}
