//! The images of the tests, built without a registry: an Envoy as the base, sidecar and control
//! plane built with the shipped Dockerfiles, and an application.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Daemon;
use crate::agent;
use crate::container_tools::find;
use crate::envoy::{Version, workspace};

/// Takes the place of the official Envoy image: the same binary with the libraries that it and the
/// programs of this project need, and no shell.
pub const BASE: &str = "app-health-test/envoy";
/// Built on the base with the shipped Dockerfile.
pub const SIDECAR: &str = "app-health-test/sidecar";
/// Built on the same base with the other shipped Dockerfile.
pub const CONTROL_PLANE: &str = "app-health-test/control-plane";
/// For applications, and to run commands in other containers.
pub const BUSYBOX: &str = "app-health-test/busybox";
/// An application whose image also contains the agent, for `wait`.
pub const HELD: &str = "app-health-test/held";

/// Has the entry point of the official image, a script that does not exist here, so that a start by
/// it fails.
const BASE_FILE: &str = "FROM scratch
COPY . /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENTRYPOINT [\"/docker-entrypoint.sh\"]
CMD [\"envoy\", \"-c\", \"/etc/envoy/envoy.yaml\"]
";

impl Daemon {
    pub(super) fn make_images(&self) {
        let envoy = Version::Newest.binary();
        let base = self.context("base");
        place(&envoy, &base.join("usr/local/bin/envoy"));
        for program in [&envoy, &agent::binary(), &agent::binary_of("app-health")] {
            libraries(program).iter().for_each(|file| place(file, &below(&base, file)));
        }
        fs::create_dir_all(base.join("run")).expect("a writable folder");
        fs::create_dir_all(base.join("var")).expect("a writable folder");
        symlink("/run", base.join("var/run")).expect("a writable folder");
        self.build(BASE, BASE_FILE, &base, &[]);

        let context = self.context("sidecar");
        place(&agent::binary(), &context.join("target/release/app-health-agent"));
        self.build_shipped("Dockerfile", SIDECAR, &context, &format!("ENVOY_IMAGE={BASE}"));

        let context = self.context("control-plane");
        place(&agent::binary_of("app-health"), &context.join("target/release/app-health"));
        self.build_shipped(
            "Dockerfile.control-plane",
            CONTROL_PLANE,
            &context,
            &format!("BASE_IMAGE={BASE}"),
        );

        let context = self.context("busybox");
        busybox(&context);
        self.build(BUSYBOX, "FROM scratch\nCOPY . /\n", &context, &[]);
        self.build(HELD, &format!("FROM {SIDECAR}\nCOPY . /\n"), &context, &[]);
        self.forget_contexts();
    }

    /// Builds the stage `prebuilt` of a shipped Dockerfile on top of another image.
    pub(super) fn build_shipped(&self, file: &str, tag: &str, context: &Path, base: &str) {
        let text = fs::read_to_string(workspace().join(file)).expect("the file is in the repository");
        self.build(tag, &text, context, &["--target", "prebuilt", "--build-arg", base]);
    }

    /// Removes the folders that images were built from.
    pub(super) fn forget_contexts(&self) {
        fs::remove_dir_all(self.folder.join("images")).expect("ours");
    }

    /// Creates a new folder for the files of an image.
    pub(super) fn context(&self, name: &str) -> PathBuf {
        let folder = self.folder.join("images").join(name);
        fs::create_dir_all(&folder).expect("a writable folder");
        folder
    }

    /// Builds an image from a folder and the text of a Dockerfile; `more` are arguments of `docker
    /// build`.
    pub(super) fn build(&self, tag: &str, text: &str, context: &Path, more: &[&str]) {
        let file = self.folder.join("Dockerfile");
        fs::write(&file, text).expect("a writable folder");
        let (file, context) = (file.to_str().expect("UTF-8"), context.to_str().expect("UTF-8"));
        let words = ["build", "--quiet", "--tag", tag, "--file", file];
        self.ask(&[&words[..], more, &[context]].concat());
    }
}

/// Installs busybox with all its applets, and its libraries if it is not static.
pub(super) fn busybox(root: &Path) {
    let program = find("busybox").expect("busybox was found before");
    place(&program, &root.join("bin/busybox"));
    libraries(&program).iter().for_each(|file| place(file, &below(root, file)));
    let output = Command::new(&program).arg("--list").output().expect("busybox starts");
    for name in String::from_utf8_lossy(&output.stdout).lines().filter(|name| *name != "busybox") {
        symlink("busybox", root.join("bin").join(name)).expect("a writable folder");
    }
    fs::create_dir_all(root.join("tmp")).expect("a writable folder");
}

/// Returns the shared libraries of a program, including the loader; none for a static one.
pub(super) fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("ldd starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

pub(super) fn below(root: &Path, file: &Path) -> PathBuf {
    root.join(file.strip_prefix("/").expect("ldd prints absolute paths"))
}

/// Copies the file that `from` resolves to; an existing copy at `to` is replaced.
pub(super) fn place(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("the path has a parent")).expect("a writable folder");
    fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}
