//! What a short-lived Envoy is asked: which version it is, and whether it takes its configuration. It has a deadline, little of what it
//! says is kept, and nothing of it is left behind.

mod complaint;

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::process::{APP_PROBERS, EnvoyCommand, pid};
use crate::launch;
use complaint::Words;

/// How long Envoy may take to say its version.
const VERSION: Duration = Duration::from_secs(5);
/// How much is read of what it says then, in bytes.
const VERSION_LIMIT: u64 = 64 * 1024;
/// How long Envoy may take to judge a configuration.
const VALIDATE: Duration = Duration::from_secs(10);

/// What `envoy --version` says, for [`crate::envoy_version::EnvoyVersion`]: `1.40.0`. The error is of the kind `TimedOut` if it says
/// nothing in time.
pub async fn version(binary: &Path) -> io::Result<Option<String>> {
    let mut command = Command::new(binary);
    let mut asked = Asked::start(command.arg("--version").stdout(Stdio::piped()).stderr(Stdio::null()))?;
    let stdout = asked.child.stdout.take();
    let said = async move {
        let mut said = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(VERSION_LIMIT).read_to_end(&mut said).await?;
        }
        io::Result::Ok(said)
    };
    let (said, _) = timeout(VERSION, async { tokio::join!(said, asked.ended()) }).await?;
    Ok(version_word(&String::from_utf8_lossy(&said?)))
}

/// `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL`.
fn version_word(text: &str) -> Option<String> {
    text.split("version:").nth(1)?.trim().split('/').nth(1).map(str::to_owned)
}

/// An Envoy that judges its configuration.
#[derive(Debug)]
pub struct Validation(Asked);

impl Validation {
    /// Lets Envoy judge the configuration that `command` would start it with. What it says goes nowhere else.
    pub fn start(command: &EnvoyCommand) -> io::Result<Self> {
        let flags = flags(&command.flags);
        let mut command = command.launched();
        command.args(flags).args(["--mode", "validate", "--log-level", "error"]);
        Asked::start(command.stdout(Stdio::null()).stderr(Stdio::piped())).map(Self)
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        self.0.pid
    }

    /// What Envoy says against it; `None`: nothing, not in time, or it was killed before it could say.
    pub async fn refusal(self) -> Option<String> {
        let Self(mut asked) = self;
        let stderr = asked.child.stderr.take();
        let words = async move {
            match stderr {
                Some(stderr) => Words::of(stderr).await,
                None => Words::default(),
            }
        };
        let (words, status) = timeout(VALIDATE, async { tokio::join!(words, asked.ended()) }).await.ok()?;
        match status.ok()?.code()? {
            0 => None,
            code if code == i32::from(launch::NOT_STARTED) => None,
            code => Some(
                words.complaint().unwrap_or_else(|| format!("it ended with code {code} and said nothing")),
            ),
        }
    }
}

/// Without those that say how much is logged: it is told to log errors alone, and bears no flag twice.
fn flags(flags: &[std::ffi::OsString]) -> Vec<&std::ffi::OsString> {
    let mut kept = Vec::new();
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        match flag.to_string_lossy().as_ref() {
            "-l" | "--log-level" | "--component-log-level" => {
                flags.next();
            }
            flag if ["--log-level=", "--component-log-level="].iter().any(|name| flag.starts_with(name)) => {}
            short if short.starts_with("-l") => {}
            _ => kept.push(flag),
        }
    }
    kept
}

/// In a process group of its own, which is killed when this is dropped.
#[derive(Debug)]
struct Asked {
    child: Child,
    pid: Pid,
}

impl Asked {
    fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.env_remove(APP_PROBERS).stdin(Stdio::null()).process_group(0).spawn()?;
        Ok(Self { pid: pid(&child), child })
    }

    /// Returns when it has ended. What it has left behind is killed, since that could hold a pipe open.
    async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill();
        status
    }

    fn kill(&self) {
        // A group that is gone needs no signal.
        let _ = killpg(self.pid, Signal::SIGKILL);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests;
