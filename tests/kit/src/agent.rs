//! Runs the binaries of the agent and of the control plane as their users do.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::envoy::other_checkout;
use crate::launcher;

/// Returns the path of the agent that cargo built beside the running binary.
///
/// # Panics
/// If it does not exist.
pub fn binary() -> PathBuf {
    binary_of("app-health-agent")
}

/// Returns the path of a binary of this workspace that cargo built beside the running one, or of the same
/// binary of another version.
///
/// # Panics
/// If it does not exist.
pub fn binary_of(name: &str) -> PathBuf {
    let running = std::env::current_exe().expect("a running binary has a path");
    let other = other_checkout().map(|checkout| checkout.join("target/release"));
    let mut folders = other.iter().map(PathBuf::as_path).chain(running.ancestors());
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()));
    found.unwrap_or_else(|| panic!("{name} is missing: ./justw build builds it"))
}

/// Returns a command that runs the agent with an empty environment, except for `PATH`.
pub fn command(arguments: &[&str]) -> Command {
    command_of("app-health-agent", arguments)
}

/// Like [`command`], for another binary of this workspace.
pub fn command_of(binary: &str, arguments: &[&str]) -> Command {
    let mut command = launcher::command(&binary_of(binary));
    command.args(arguments).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Exit code and output of a command.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub async fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output().await.expect("a child can be waited for");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs the agent until it exits.
pub async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let mut command = command(arguments);
    command.envs(environment.iter().copied());
    finish(command.spawn().expect("the agent starts")).await
}
