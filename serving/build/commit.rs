//! Shared by the build scripts of agent and control plane: the commit that a binary is built from.

use std::path::Path;
use std::process::Command;

/// Overrides the commit, for a build outside a checkout, such as that of an image.
const VARIABLE: &str = "APP_HEALTH_BUILD_COMMIT";

/// Sets `APP_HEALTH_COMMIT` for the crate: the variable above, else in an optimized build the commit of
/// the checkout, else `unknown`. Builds for development do not read the checkout, because each commit
/// would compile their crates again.
pub(crate) fn emit(workspace: &Path) {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let given = std::env::var_os(VARIABLE)
        .and_then(|commit| commit.into_string().ok())
        .filter(|commit| !commit.is_empty());
    let is_optimized = std::env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    let commit = given.or_else(|| if is_optimized { of_checkout(workspace) } else { None });
    println!("cargo::rustc-env=APP_HEALTH_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// Returns the full hash of HEAD, or nothing outside a checkout or without git.
fn of_checkout(workspace: &Path) -> Option<String> {
    for name in ["HEAD", "logs/HEAD"] {
        let file = workspace.join(git(workspace, &["rev-parse", "--git-path", name])?);
        if file.exists() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    git(workspace, &["rev-parse", "--verify", "HEAD"])
}

fn git(workspace: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(workspace).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
