//! Blocks of a page as scripts of the shell, in a folder of their own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Block, difference};

/// How many seconds a block may take.
const PATIENCE: &str = "300";

/// Where blocks run.
pub struct Scripts {
    /// The shell's working folder.
    pub folder: PathBuf,
    /// Where each block's output stays, as `line-12.log`.
    pub logs: PathBuf,
    /// What their environment has besides ours.
    pub environment: Vec<(String, OsString)>,
}

impl Scripts {
    /// Runs one block to its end, by a shell that ends at the first command that fails.
    ///
    /// # Errors
    /// What went wrong: its exit code, or that it printed something else than is shown.
    ///
    /// # Panics
    /// When there is no shell, or no writable folder.
    pub fn run(&self, block: &Block) -> Result<(), String> {
        let path = self.logs.join(format!("line-{}.log", block.line));
        let log = File::create(&path).expect("a writable folder");
        // A reader sees both, in the order in which they come.
        let (stdout, stderr) = (log.try_clone().expect("a descriptor"), log);
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "5", PATIENCE, "sh", "-euc", &block.script]);
        command.current_dir(&self.folder).envs(self.environment.iter().cloned());
        let status = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).status().expect("it starts");
        let output = String::from_utf8_lossy(&fs::read(&path).expect("its log")).into_owned();
        let Block { line, script, .. } = block;
        if !status.success() {
            return Err(format!("line {line}: {status}\n{script}printed:\n{output}"));
        }
        let wrong = block.shown.as_deref().and_then(|shown| difference(shown, &output));
        wrong.map_or(Ok(()), |wrong| Err(format!("line {line}: {wrong}\nof:\n{script}")))
    }
}
