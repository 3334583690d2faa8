//! A real Envoy on separate addresses, killed on drop.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, PoisonError};

use envoy_bootstrap::envoy_version::EnvoyVersion;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::process::{Child, Command};

use crate::caller;
use crate::launcher;
use crate::wait;

/// Names another version, such as 1.38.3, which takes the place of [`Version::Floor`] in one run of the tests.
const FLOOR: &str = "APP_HEALTH_TEST_ENVOY_FLOOR";

/// One of the two versions of Envoy that the project is tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Newest,
    /// The oldest version that the tests use.
    Floor,
}

impl Version {
    /// Returns the path of the binary, which `./justw` installs.
    ///
    /// # Panics
    /// If it is missing, because a test without Envoy must not pass.
    pub fn binary(self) -> PathBuf {
        let tools = workspace().join(".tools");
        let floor = std::env::var_os(FLOOR).and_then(|version| version.into_string().ok());
        let path = match (self, floor) {
            (Self::Newest, _) => tools.join("bin/envoy"),
            (Self::Floor, None) => tools.join("bin/envoy-floor"),
            (Self::Floor, Some(version)) => tools.join(format!("envoy-{version}/envoy/_bin/envoy")),
        };
        assert!(
            path.exists(),
            "Envoy is missing at {}: run the tests by ./justw test, which installs it",
            path.display()
        );
        path
    }
}

impl Version {
    /// Returns the version for which bootstraps are rendered.
    pub fn bootstrap(self) -> EnvoyVersion {
        let version = match self {
            Self::Newest => "1.40",
            Self::Floor => "1.39",
        };
        version.parse().expect("a version")
    }
}

/// Returns the root of the repository.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is in tests/").to_path_buf()
}

/// Variable with a checkout of another version, whose programs and filter are run instead of those of this
/// one. `./justw bench-against` sets it.
const CHECKOUT: &str = "APP_HEALTH_TEST_CHECKOUT";

/// Returns the root of the checkout of another version, if there is one.
pub fn other_checkout() -> Option<PathBuf> {
    std::env::var_os(CHECKOUT).map(PathBuf::from)
}

/// An Envoy that runs until this is dropped.
pub struct Envoy {
    /// The folder with configuration, log and admin socket.
    pub folder: PathBuf,
    child: Child,
}

impl Envoy {
    /// Starts an Envoy with `bootstrap`, whose admin socket is `admin.sock` in `folder`, and waits
    /// until it is LIVE and its workers have started.
    ///
    /// # Panics
    /// If Envoy exits or is not ready in time; the message contains its log.
    pub async fn start(version: Version, folder: PathBuf, bootstrap: &Value, workers: u32) -> Self {
        Self::start_with(version, folder, bootstrap, workers, &[]).await
    }

    /// Like [`Envoy::start`], with more flags for Envoy.
    ///
    /// # Panics
    /// As [`Envoy::start`].
    pub async fn start_with(
        version: Version,
        folder: PathBuf,
        bootstrap: &Value,
        workers: u32,
        flags: &[&str],
    ) -> Self {
        let envoy = Self::spawn(version, folder, bootstrap, workers, flags);
        envoy.ready().await
    }

    fn spawn(version: Version, folder: PathBuf, bootstrap: &Value, workers: u32, flags: &[&str]) -> Self {
        let file = folder.join("envoy.json");
        std::fs::write(&file, bootstrap.to_string()).expect("a writable folder");
        let log = std::fs::File::create(folder.join("envoy.log")).expect("a writable folder");
        let child = launcher::command(&version.binary())
            .arg("--config-path")
            .arg(&file)
            .args([
                "--disable-hot-restart",
                "--log-level",
                "warning",
                "--component-log-level",
                "wasm:info,misc:error",
            ])
            .args(["--concurrency", &workers.to_string()])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("Envoy starts");
        Self { folder, child }
    }

    async fn ready(mut self) -> Self {
        let folder = self.folder.clone();
        let what = || format!("Envoy is ready:\n{}", log(&folder));
        wait::until_or(what, async || {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("Envoy exited with {status}:\n{}", self.log());
            }
            self.stat("listener_manager.workers_started").await == Some(1)
        })
        .await;
        self
    }

    pub fn log(&self) -> String {
        log(&self.folder)
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("a running child has a pid")
    }

    /// Sends a request to the admin socket.
    pub async fn admin(&self, path: &str) -> std::io::Result<String> {
        caller::get_unix(&self.folder.join("admin.sock"), path).await
    }

    /// Returns the value of a counter or gauge; `None` if it does not exist.
    pub async fn stat(&self, name: &str) -> Option<u64> {
        let text = self.admin(&format!("/stats?filter=^{name}$")).await.ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
    }

    /// Waits until this counter or gauge has this value.
    pub async fn until_stat(&self, name: &str, value: u64) {
        wait::until(&format!("{name} is {value}"), async || self.stat(name).await == Some(value)).await;
    }

    /// Kills Envoy and waits until it has exited.
    pub async fn stop(mut self) {
        self.child.kill().await.expect("Envoy can be killed");
    }
}

/// Runs `envoy --mode validate` on a configuration.
///
/// # Errors
/// The output of Envoy.
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

/// Returns the address of a probe listener at `ip`, on Istio's port.
pub fn probe_listener(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 15020)
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("envoy.log")).unwrap_or_default()
}

/// The folder of this process, without the files of an earlier process that had the same ID.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = short_path(&workspace().join("target/it")).join(std::process::id().to_string());
    let _ = std::fs::remove_dir_all(&folder);
    folder
});

/// Creates a folder, and a link to it in the directory for temporary files, which is returned. The path of a Unix
/// socket is at most 107 bytes long, so tests must not depend on how deep the checkout is. The link stays, and every
/// process uses the same one.
///
/// # Panics
/// If either cannot be created.
pub fn short_path(folder: &Path) -> PathBuf {
    std::fs::create_dir_all(folder).expect("target is writable");
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let name: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let link = std::env::temp_dir().join(format!("ah-{name}"));
    // Another process of the tests may make the same link at the same time.
    let made = std::os::unix::fs::symlink(folder, &link);
    let target =
        std::fs::read_link(&link).unwrap_or_else(|error| panic!("{}: {error}; {made:?}", link.display()));
    assert_eq!(target, folder, "{} leads elsewhere; remove it", link.display());
    link
}

/// Creates a folder below `target/it`, named after the test, or returns it if it exists. Its path, and the name, are
/// short because the path of a Unix socket is at most 107 bytes long.
///
/// # Panics
/// If two tests use the same name: each would overwrite the files of the other.
pub fn folder(name: &str) -> PathBuf {
    static OWNERS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    // The harness names the thread of a test after it.
    let thread = std::thread::current();
    if let Some(test) = thread.name().filter(|thread| !thread.starts_with("tokio")) {
        let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.entry(name.to_owned()).or_insert_with(|| test.to_owned());
        assert_eq!(owner.as_str(), test, "two tests use the folder {name}");
    }
    let folder = FOLDER.join(name);
    std::fs::create_dir_all(&folder).expect("target is writable");
    folder
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_length_of_a_path_does_not_depend_on_the_checkout() {
        let deep = super::folder("deep").join("checkout".repeat(20));
        let link = super::short_path(&deep);
        std::os::unix::net::UnixListener::bind(link.join("socket")).expect("a path that is short enough");
        assert_eq!(super::short_path(&deep), link, "a second process uses the same link");
        std::fs::remove_file(&link).expect("the link");
    }
}
