//! Runs `chromedriver`, the WebDriver server of Chromium, as a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kit::envoy::workspace;
use kit::{launcher, wait};
use tokio::process::Child;

/// Precedes the port in the line that the server writes when it listens.
const STARTED: &str = "started successfully on port ";
/// How often a server is started that ends before it listens.
const ATTEMPTS: usize = 10;

/// A running server, killed on drop. A session ends before its server does, and its browser with it.
pub struct DriverServer {
    /// URL of the server, with a free port on loopback.
    pub url: String,
    _child: Child,
}

impl DriverServer {
    /// Starts a server that keeps its log, and the profiles of its browsers, in `folder`.
    ///
    /// # Panics
    /// If the server is not installed, or does not start.
    pub async fn start(folder: &Path) -> Self {
        let mut log = String::new();
        for _ in 0..ATTEMPTS {
            match Self::try_start(folder).await {
                Ok(server) => return server,
                Err(written) => log = written,
            }
        }
        panic!("chromedriver ended {ATTEMPTS} times before it listened: {log}")
    }

    /// Like [`start`](Self::start), once. Returns the log of a server that ends before it listens.
    ///
    /// The server takes a free port of one address family and needs the same port of the other,
    /// which may be in use. Then it ends.
    async fn try_start(folder: &Path) -> Result<Self, String> {
        let log = folder.join("chromedriver.log");
        let output = File::create(&log).expect("a writable folder");
        let mut command = launcher::command(&installed("chromedriver"));
        command.arg("--port=0").env("TMPDIR", folder).stdin(Stdio::null()).kill_on_drop(true);
        command.stderr(output.try_clone().expect("an open file")).stdout(output);
        let mut child = command.spawn().expect("chromedriver starts");
        let text = || std::fs::read_to_string(&log).unwrap_or_default();
        let port = async || {
            let ended = child.try_wait().expect("a child of this process").is_some();
            let text = text();
            let port = text.split_once(STARTED).and_then(|(_, port)| port.split_once('.'));
            match port {
                Some((port, _)) => Some(Ok(port.to_owned())),
                None => ended.then_some(Err(text)),
            }
        };
        let port = wait::until_some(|| format!("chromedriver listens: {}", text()), port).await?;
        Ok(Self { url: format!("http://127.0.0.1:{port}"), _child: child })
    }
}

/// Returns the path of a file that `./justw --browser` installs.
///
/// # Panics
/// If it does not exist.
pub fn installed(name: &str) -> PathBuf {
    let path = workspace().join(".tools/browser").join(name);
    assert!(path.exists(), "{} is missing: ./justw --browser installs it", path.display());
    path
}
