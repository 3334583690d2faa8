//! Runs blocks of a page as shell scripts in a separate folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Block, difference};

/// Limit for one block, in seconds.
const PATIENCE: &str = "300";

pub struct Scripts {
    /// The shell's working folder.
    pub folder: PathBuf,
    /// The folder for the output of each block, for example `line-12.log`.
    pub logs: PathBuf,
    /// Variables added to the environment of this process.
    pub environment: Vec<(String, OsString)>,
}

impl Scripts {
    /// Runs one block in a shell that exits at the first command that fails.
    ///
    /// # Errors
    /// The exit code, or the difference between the printed and the shown output.
    ///
    /// # Panics
    /// If the shell cannot be started or the folder is not writable.
    pub fn run(&self, block: &Block) -> Result<(), String> {
        let path = self.logs.join(format!("line-{}.log", block.line));
        let log = File::create(&path).expect("a writable folder");
        // Both streams go to the same file, in the order in which they are written.
        let (stdout, stderr) = (log.try_clone().expect("a descriptor"), log);
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "5", PATIENCE, "sh", "-euc", &block.script]);
        command.current_dir(&self.folder).envs(self.environment.iter().cloned());
        let status =
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).status().expect("the shell starts");
        let output = String::from_utf8_lossy(&fs::read(&path).expect("the log is readable")).into_owned();
        let Block { line, script, .. } = block;
        if !status.success() {
            return Err(format!("line {line}: {status}\n{script}printed:\n{output}"));
        }
        let wrong = block.expected_output.as_deref().and_then(|shown| difference(shown, &output));
        wrong.map_or(Ok(()), |wrong| Err(format!("line {line}: {wrong}\nof:\n{script}")))
    }
}
