//! Istio's own agent, which runs in our place where it is needed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name by which Istio's containers execute the agent.
pub const NAME: &str = "pilot-agent";
/// The variable that decides whether another agent may run in our place, and its value if not.
pub const FALLBACK: &str = "APP_HEALTH_FALLBACK";
pub const OFF: &str = "off";
/// The variable with the path of Istio's agent.
pub const STOCK_AGENT: &str = "APP_HEALTH_STOCK_AGENT";
const SELF: &str = "/proc/self/exe";

/// Returns `given`, or the program `pilot-agent` in one of the directories of `path` that is not this one.
///
/// # Errors
/// A text that says where it was looked for.
pub fn find(given: Option<&Path>, path: &OsStr) -> Result<PathBuf, String> {
    let is_program = |file: &Path| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if let Some(given) = given {
        let is_other = is_program(given) && !is_self(given);
        return is_other
            .then(|| given.to_owned())
            .ok_or_else(|| format!("--stock-agent = {given:?}: not a program that is Istio's agent"));
    }
    let folders = path.as_bytes().split(|byte| *byte == b':');
    let mut files = folders.map(|folder| Path::new(OsStr::from_bytes(folder)).join(NAME));
    let found = files.find(|file| is_program(file) && !is_self(file));
    found.ok_or_else(|| format!("there is no other {NAME} on the PATH {path:?}; set {STOCK_AGENT}"))
}

/// Returns true if the file is this program, by whatever name.
fn is_self(file: &Path) -> bool {
    let id = |file: &Path| fs::metadata(file).map(|found| (found.dev(), found.ino())).ok();
    id(file) == id(Path::new(SELF))
}

/// Replaces this process by the agent, which must not look for another one: it may be a copy of us.
///
/// # Errors
/// If the program cannot be executed.
pub fn exec(program: &Path, words: &[String]) -> io::Error {
    Command::new(program).arg0(NAME).args(words).env(FALLBACK, OFF).exec()
}

/// Returns the version that Istio's agent says, such as `1.31.0`. `None` if it says none.
pub fn version(program: &Path) -> Option<String> {
    let output = Command::new(program)
        .args(["version", "--short"])
        .env(FALLBACK, OFF)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    parse_version(&String::from_utf8(output.stdout).ok()?)
}

/// Reads the line `client version: 1.31.0`. Lines of its log can precede it.
fn parse_version(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.trim().strip_prefix("client version: "))?;
    let is_version = !version.is_empty() && !version.contains(char::is_whitespace);
    is_version.then(|| version.to_owned())
}

#[cfg(test)]
mod tests;
