//! All images of a test node in one archive. A separate Docker daemon builds it, and only if a file
//! that goes into it has changed.

mod mesh;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::Daemon;
use super::images::{below, busybox, libraries, place};
use crate::container_tools::{self, find};
use crate::envoy::{Version, workspace};

pub use mesh::{AGENT, PROXY_WITH_OURS, istios_image};

/// The sidecar, built with the shipped Dockerfile.
pub const SIDECAR: &str = concat!("app-health:", env!("CARGO_PKG_VERSION"));
/// The webhook and discovery, built with the shipped Dockerfile.
pub const CONTROL_PLANE: &str = concat!("app-health-control-plane:", env!("CARGO_PKG_VERSION"));
/// Holds the namespaces of a Pod.
pub const PAUSE: &str = "app-health-test/pause:1";
/// The application of the tests, with busybox for `exec`.
pub const APPLICATION: &str = "app-health-test/application:1";
/// Busybox with all its applets in `/bin`.
pub const BUSYBOX: &str = "app-health-test/busybox:1";
/// A small Debian with iptables.
pub const DEBIAN: &str = "app-health-test/debian:1";
/// Envoy on top of Debian, in place of the official image; the base of the sidecar image.
pub const ENVOY: &str = "app-health-test/envoy:1";

/// Which images a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Those that this project ships, and those of the tests.
    Shipped,
    /// Those of an Istio mesh, and those of the tests.
    Mesh,
}

impl Contents {
    fn images(self) -> &'static [&'static str] {
        match self {
            Self::Shipped => &[SIDECAR, CONTROL_PLANE, PAUSE, APPLICATION, BUSYBOX, DEBIAN, ENVOY],
            Self::Mesh => &[
                mesh::PROXY,
                mesh::PROXY_WITH_OURS,
                mesh::PILOT,
                mesh::AGENT,
                CONTROL_PLANE,
                PAUSE,
                APPLICATION,
                BUSYBOX,
            ],
        }
    }

    /// Returns the path of the archive.
    fn archive(self) -> PathBuf {
        let name = match self {
            Self::Shipped => "images.tar",
            Self::Mesh => "mesh-images.tar",
        };
        workspace().join("target/node").join(name)
    }
}

/// The first process of a PID namespace ignores signals for which it has no handler, so it installs
/// one.
const PAUSE_FILE: &str = r#"FROM scratch
COPY busybox /bin/busybox
ENTRYPOINT ["/bin/busybox", "sh", "-c", "trap 'exit 0' TERM INT; while :; do /bin/busybox sleep 86400 & wait $!; done"]
"#;

/// Has the same entry point as the official image.
const ENVOY_FILE: &str = r#"FROM app-health-test/debian:1
COPY envoy /usr/local/bin/envoy
CMD ["envoy", "-c", "/etc/envoy/envoy.yaml"]
"#;

const BUSYBOX_FILE: &str = r#"FROM scratch
COPY . /
CMD ["/bin/sh"]
"#;

const APPLICATION_FILE: &str = r#"FROM scratch
COPY . /
ENTRYPOINT ["/bin/application"]
"#;

/// The files that the images of the tests are built from.
struct Parts {
    control_plane: PathBuf,
    application: PathBuf,
    envoy: PathBuf,
    busybox: PathBuf,
    debian: PathBuf,
    others: Others,
}

/// The files of the other images.
enum Others {
    Shipped { agent: PathBuf },
    Mesh(mesh::Parts),
}

/// Builds an archive, unless it already exists with the same content, and returns its path. If
/// several processes do so at the same time, one builds it and the others wait.
///
/// # Errors
/// Names what is missing on this machine.
///
/// # Panics
/// If an image cannot be built.
pub fn make(contents: Contents) -> Result<PathBuf, String> {
    let parts = Parts::find(contents)?;
    let path = contents.archive();
    let beside = |end: &str| path.with_extension(end);
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a writable folder");
    let lock = File::create(beside("lock")).expect("a writable folder");
    lock.lock().expect("a file can be locked");
    let digest = parts.digest();
    if path.is_file() && fs::read_to_string(beside("digest")).is_ok_and(|made| made == digest) {
        return Ok(path);
    }
    let daemon = Daemon::start_empty("images");
    daemon.make_all(&parts);
    let new = beside("new");
    daemon.ask(&[&["save", "--output", new.to_str().expect("UTF-8")], contents.images()].concat());
    // In this order, an interruption never leaves the digest of another archive.
    let _ = fs::remove_file(beside("digest"));
    fs::rename(&new, &path).expect("a writable folder");
    fs::write(beside("digest"), digest).expect("a writable folder");
    Ok(path)
}

impl Parts {
    fn find(contents: Contents) -> Result<Self, String> {
        container_tools::folder()
            .ok_or("CONTAINER_TOOLS is not set to a folder: run ./justw --containers")?;
        let others = match contents {
            Contents::Shipped => {
                Others::Shipped { agent: there(built(&static_agent()), "./justw release builds it")? }
            }
            Contents::Mesh => Others::Mesh(mesh::Parts::find()?),
        };
        Ok(Self {
            control_plane: there(built("release/app-health"), "./justw release-control-plane builds it")?,
            application: there(built("debug/application"), "./justw build builds it")?,
            envoy: Version::Newest.binary(),
            busybox: find("busybox").ok_or("busybox is missing: apt-get install busybox-static")?,
            debian: there(workspace().join(".tools/debian.tar"), "./justw --debian makes it")?,
            others,
        })
    }

    /// Returns a digest of paths, sizes and modification times, as cargo uses them; reading half a
    /// gigabyte would take longer than the start of a node.
    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let others = match &self.others {
            Others::Shipped { agent } => vec![agent],
            Others::Mesh(parts) => parts.files(),
        };
        let Self { control_plane, application, envoy, busybox, debian, .. } = self;
        for file in others.into_iter().chain([control_plane, application, envoy, busybox, debian]) {
            let data = fs::metadata(file).expect("the file was found before");
            hash.update(format!(
                "{} {} {}.{}\n",
                file.display(),
                data.len(),
                data.mtime(),
                data.mtime_nsec()
            ));
        }
        for file in ["Dockerfile", "Dockerfile.control-plane", "Dockerfile.istio"] {
            hash.update(fs::read(workspace().join(file)).expect("the file is in the repository"));
        }
        let sources =
            [include_str!("archive.rs"), include_str!("archive/mesh.rs"), include_str!("images.rs")];
        hash.update(sources.concat());
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the path of the agent for Pods below the target folder.
fn static_agent() -> String {
    format!("{}-unknown-linux-musl/release/app-health-agent", std::env::consts::ARCH)
}

fn there(file: PathBuf, how: &str) -> Result<PathBuf, String> {
    if file.is_file() { Ok(file) } else { Err(format!("{} is missing: {how}", file.display())) }
}

impl Daemon {
    fn make_all(&self, parts: &Parts) {
        let path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let debian = parts.debian.to_str().expect("UTF-8");
        self.ask(&["import", "--change", path, "--change", "CMD [\"/bin/sh\"]", debian, DEBIAN]);
        self.build(ENVOY, ENVOY_FILE, &self.with_file("envoy", &parts.envoy, "envoy"), &[]);
        self.build(PAUSE, PAUSE_FILE, &self.with_file("pause", &parts.busybox, "busybox"), &[]);

        let context = self.context("busybox");
        busybox(&context);
        self.build(BUSYBOX, BUSYBOX_FILE, &context, &[]);
        let program = context.join("bin/application");
        place(&parts.application, &program);
        without_symbols(&program);
        libraries(&parts.application).iter().for_each(|file| place(file, &below(&context, file)));
        self.build(APPLICATION, APPLICATION_FILE, &context, &[]);

        match &parts.others {
            Others::Shipped { agent } => {
                let context = self.with_file("sidecar", agent, "target/release/app-health-agent");
                self.build_shipped("Dockerfile", SIDECAR, &context, &format!("ENVOY_IMAGE={ENVOY}"));
            }
            Others::Mesh(parts) => self.make_mesh(parts),
        }
        let context = self.with_file("control-plane", &parts.control_plane, "target/release/app-health");
        self.build_shipped(
            "Dockerfile.control-plane",
            CONTROL_PLANE,
            &context,
            &format!("BASE_IMAGE={DEBIAN}"),
        );
        self.forget_contexts();
    }

    /// Creates a folder for an image with this file.
    fn with_file(&self, name: &str, from: &Path, to: &str) -> PathBuf {
        let context = self.context(name);
        place(from, &context.join(to));
        context
    }
}

/// Removes the debug symbols, which are four fifths of the file.
fn without_symbols(program: &Path) {
    let status = Command::new("strip").arg(program).status().expect("strip comes with the linker");
    assert!(status.success(), "strip {}", program.display());
}

/// Returns the path of a file below the cargo target folder of the running binary.
fn built(name: &str) -> PathBuf {
    let running = std::env::current_exe().expect("a running binary has a path");
    let found = running.ancestors().map(|folder| folder.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| workspace().join("target").join(name))
}
