//! Parses metrics, and checks rules and configurations, with Prometheus' own code in the program
//! `promtool`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::envoy::workspace;
use crate::not_tested;

/// The path of `promtool`.
pub struct Promtool(PathBuf);

impl Promtool {
    /// Finds the program that `./justw` installed, or that of the machine. If there is none, `None`
    /// is returned and reported on stderr.
    pub fn find() -> Option<Self> {
        let ours = workspace().join(".tools/bin/promtool");
        let machine = ["/usr/local/bin", "/usr/bin"].map(|folder| Path::new(folder).join("promtool"));
        let found = [ours].into_iter().chain(machine).find(|path| path.exists());
        if found.is_none() {
            not_tested::report(
                "metrics and alerts with Prometheus' own code",
                "no promtool (Debian's package prometheus)",
            );
        }
        found.map(Self)
    }

    /// Parses text format 0.0.4 and returns the messages of the linter.
    ///
    /// # Errors
    /// The errors of the parser.
    ///
    /// # Panics
    /// If promtool cannot be run.
    pub fn text(&self, exposition: &str) -> Result<String, String> {
        let mut command = Command::new(&self.0);
        command
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("promtool starts");
        let written = child.stdin.take().expect("stdin is piped").write_all(exposition.as_bytes());
        let output = child.wait_with_output().expect("promtool ends");
        // promtool reads to the end, or to the first line with an error.
        written
            .or_else(|error| if output.status.code() == Some(1) { Ok(()) } else { Err(error) })
            .expect("a pipe");
        let words = words(&output);
        // Exit code 3 reports messages of the linter only.
        if matches!(output.status.code(), Some(0 | 3)) { Ok(words) } else { Err(words) }
    }

    /// Runs promtool in `folder` and returns what it prints.
    ///
    /// # Errors
    /// Its output, if it exits with a failure.
    ///
    /// # Panics
    /// If promtool cannot be run.
    pub fn run(&self, folder: &Path, arguments: &[&str]) -> Result<String, String> {
        let output =
            Command::new(&self.0).args(arguments).current_dir(folder).output().expect("promtool starts");
        let words = words(&output);
        if output.status.success() { Ok(words) } else { Err(words) }
    }
}

fn words(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
