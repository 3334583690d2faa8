//! Runs blocks of a page as shell scripts in a separate folder.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kit::agent::binary_of;
use kit::envoy::workspace;

use super::{Block, difference};
use crate::node::Node;
use crate::{helm, tool};

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
    /// Returns the environment of a page's reader: a new directory with the shipped manifests and the
    /// chart, as in a checkout, `kubectl`, `helm` and the project's programs in `PATH`, and the
    /// kubeconfig of the administrator.
    ///
    /// # Panics
    /// If the directory cannot be created.
    pub fn of_reader(node: &Node) -> Self {
        let logs = node.folder.join("log/docs");
        let folder = node.folder.join("docs");
        for folder in [&logs, &folder] {
            fs::create_dir_all(folder).expect("a writable folder");
        }
        let shipped = ["envoy-config", "charts"].map(|name| workspace().join(name));
        let copy = Command::new("cp").arg("-R").args(shipped).arg(&folder).status().expect("cp starts");
        assert!(copy.success());
        let (kubectl, helm, ours) = (tool("kubectl"), helm::program(), binary_of("app-health"));
        let first = [&kubectl, &helm, &ours]
            .map(|program| program.parent().map(Path::to_path_buf).unwrap_or_default());
        let path = env::var_os("PATH").unwrap_or_default();
        let path =
            env::join_paths(first.into_iter().chain(env::split_paths(&path))).expect("paths without colons");
        let environment = vec![
            ("KUBECONFIG".to_owned(), node.cluster.kubeconfig("admin").into()),
            ("HOME".to_owned(), folder.clone().into()),
            ("PATH".to_owned(), path),
            // The locale with which the pages were written.
            ("LC_ALL".to_owned(), "C.UTF-8".into()),
        ];
        Self { folder, logs, environment }
    }

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
