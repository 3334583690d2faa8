//! The agent's binary, as its users start it; and that of the control plane.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// The agent that cargo built beside the binary that is running.
///
/// # Panics
/// When it is missing.
pub fn binary() -> PathBuf {
    binary_of("app-health-agent")
}

/// A binary of this workspace that cargo built beside the one that is running.
///
/// # Panics
/// When it is missing.
pub fn binary_of(name: &str) -> PathBuf {
    let running = std::env::current_exe().expect("a running binary has a path");
    let found = running.ancestors().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing: ./justw build builds it"))
}

/// A command of the agent, with an environment of its own: nothing of this process' but the path to programs.
pub fn command(arguments: &[&str]) -> Command {
    command_of("app-health-agent", arguments)
}

/// The same of another binary of this workspace.
pub fn command_of(binary: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary_of(binary));
    command.args(arguments).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// What became of a command.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; `None` for a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Waits for a command's end.
pub async fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output().await.expect("a child can be waited for");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs a command to its end.
pub async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let mut command = command(arguments);
    command.envs(environment.iter().copied());
    finish(command.spawn().expect("the agent starts")).await
}
