//! Prometheus' own parsers, as the program `promtool`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::envoy::workspace;
use crate::not_tested;

/// `promtool`, found.
pub struct Promtool(PathBuf);

impl Promtool {
    /// The one that `./justw` has put there, or the machine's. `None`: there is none, which is said on stderr.
    pub fn find() -> Option<Self> {
        let ours = workspace().join(".tools/bin/promtool");
        let machine = ["/usr/local/bin", "/usr/bin"].map(|folder| Path::new(folder).join("promtool"));
        let found = [ours].into_iter().chain(machine).find(|path| path.exists());
        if found.is_none() {
            not_tested::say(
                "merged metrics by Prometheus' own parsers",
                "no promtool (Debian's package prometheus)",
            );
        }
        found.map(Self)
    }

    /// Parses text format 0.0.4; the lines of its linter.
    ///
    /// # Errors
    /// What the parser does not understand.
    ///
    /// # Panics
    /// When promtool cannot be run.
    pub fn text(&self, exposition: &str) -> Result<String, String> {
        let mut command = Command::new(&self.0);
        command
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("promtool starts");
        let written = child.stdin.take().expect("it is piped").write_all(exposition.as_bytes());
        let output = child.wait_with_output().expect("promtool ends");
        // It reads to the end, or to the first line that it does not understand.
        written
            .or_else(|error| if output.status.code() == Some(1) { Ok(()) } else { Err(error) })
            .expect("a pipe");
        let words = words(&output);
        // 3: the linter would have it another way.
        if matches!(output.status.code(), Some(0 | 3)) { Ok(words) } else { Err(words) }
    }
}

fn words(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
