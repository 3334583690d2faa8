//! A real Envoy on addresses of its own, ended on drop.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use app_health_agent::envoy_version::EnvoyVersion;
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::caller;

/// Which of the two Envoys that the project is tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The newest.
    Newest,
    /// The oldest.
    Floor,
}

impl Version {
    /// The binary; `./justw` puts it there.
    ///
    /// # Panics
    /// When it is missing: a test without Envoy has not passed.
    pub fn binary(self) -> PathBuf {
        let name = match self {
            Self::Newest => "envoy",
            Self::Floor => "envoy-floor",
        };
        let path = workspace().join(".tools/bin").join(name);
        assert!(
            path.exists(),
            "Envoy is missing at {}: run the tests by ./justw test, which installs it",
            path.display()
        );
        path
    }
}

impl Version {
    /// What a bootstrap for it is rendered for.
    pub fn bootstrap(self) -> EnvoyVersion {
        let version = match self {
            Self::Newest => "1.40",
            Self::Floor => "1.39",
        };
        version.parse().expect("a version")
    }
}

/// The root of the checkout.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in tests/").to_path_buf()
}

/// An Envoy that runs until this is dropped.
pub struct Envoy {
    /// Its folder: configuration, log, admin socket.
    pub folder: PathBuf,
    child: Child,
}

impl Envoy {
    /// Starts an Envoy with `bootstrap`, whose admin is the socket `admin.sock` in `folder`, and waits until it is
    /// LIVE and its workers run.
    ///
    /// # Panics
    /// When Envoy ends or is not ready within 20 s; with the end of its log.
    pub async fn start(version: Version, folder: PathBuf, bootstrap: &Value, workers: u32) -> Self {
        let envoy = Self::spawn(version, folder, bootstrap, workers);
        envoy.ready().await
    }

    fn spawn(version: Version, folder: PathBuf, bootstrap: &Value, workers: u32) -> Self {
        let file = folder.join("envoy.json");
        std::fs::write(&file, bootstrap.to_string()).expect("a writable folder");
        let log = std::fs::File::create(folder.join("envoy.log")).expect("a writable folder");
        let child = Command::new(version.binary())
            .arg("--config-path")
            .arg(&file)
            .args(["--disable-hot-restart", "--log-level", "warning", "--component-log-level", "wasm:info"])
            .args(["--concurrency", &workers.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("Envoy starts");
        Self { folder, child }
    }

    async fn ready(mut self) -> Self {
        for _ in 0..1000 {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("Envoy ended with {status}:\n{}", self.log());
            }
            if self.stat("listener_manager.workers_started").await == Some(1) {
                return self;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("Envoy is not ready:\n{}", self.log());
    }

    /// Envoy's log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("envoy.log")).unwrap_or_default()
    }

    /// Envoy's process.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("a running child has a pid")
    }

    /// Asks the admin socket.
    pub async fn admin(&self, path: &str) -> std::io::Result<String> {
        caller::get_unix(&self.folder.join("admin.sock"), path).await
    }

    /// One counter or gauge; `None` where there is none of that name.
    pub async fn stat(&self, name: &str) -> Option<u64> {
        let text = self.admin(&format!("/stats?filter=^{name}$")).await.ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
    }

    /// Ends Envoy and waits for its end.
    pub async fn stop(mut self) {
        self.child.kill().await.expect("Envoy can be ended");
    }
}

/// What `envoy --mode validate` says of a configuration.
///
/// # Errors
/// Envoy's own words.
pub async fn validate(version: Version, folder: &Path, config: &str) -> Result<(), String> {
    let file = folder.join("validate.yaml");
    std::fs::write(&file, config).expect("a writable folder");
    let output = Command::new(version.binary())
        .args(["--mode", "validate", "--config-path"])
        .arg(&file)
        .output()
        .await
        .expect("Envoy starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(text) }
}

/// A probe listener's address at `ip`, on Istio's port.
pub fn probe_listener(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 15020)
}

/// A new folder below `target/`, named after the test; short, since a socket's path has 107 bytes at most.
pub fn folder(name: &str) -> PathBuf {
    let folder = workspace().join("target/it").join(format!("{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("target is writable");
    folder
}
