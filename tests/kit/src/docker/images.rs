//! The images of the tests, without a registry: an Envoy as the base, sidecar and control plane by the shipped Dockerfiles, an application.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Daemon;
use crate::agent;
use crate::container_tools::find;
use crate::envoy::{Version, workspace};

/// In the place of the official Envoy: the same binary with the libraries that it and our programs need, and no shell.
pub const BASE: &str = "app-health-test/envoy";
/// What the Dockerfile makes on top of it.
pub const SIDECAR: &str = "app-health-test/sidecar";
/// What the other Dockerfile makes, on the same base.
pub const CONTROL_PLANE: &str = "app-health-test/control-plane";
/// For applications, and to look into other containers.
pub const BUSYBOX: &str = "app-health-test/busybox";
/// An application whose image has the agent too, for `wait`.
pub const HELD: &str = "app-health-test/held";

/// As the official image has it: a script that is not there, so that a start by it would be seen.
const BASE_FILE: &str = "FROM scratch
COPY . /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENTRYPOINT [\"/docker-entrypoint.sh\"]
CMD [\"envoy\", \"-c\", \"/etc/envoy/envoy.yaml\"]
";

impl Daemon {
    /// Makes all of them.
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

    /// Builds the stage `prebuilt` of one of our Dockerfiles, on top of another image.
    pub(super) fn build_shipped(&self, file: &str, tag: &str, context: &Path, base: &str) {
        let text = fs::read_to_string(workspace().join(file)).expect("it is in the checkout");
        self.build(tag, &text, context, &["--target", "prebuilt", "--build-arg", base]);
    }

    /// Removes the folders that images were built of.
    pub(super) fn forget_contexts(&self) {
        fs::remove_dir_all(self.folder.join("images")).expect("ours");
    }

    /// A new folder for the files of an image.
    pub(super) fn context(&self, name: &str) -> PathBuf {
        let folder = self.folder.join("images").join(name);
        fs::create_dir_all(&folder).expect("a writable folder");
        folder
    }

    /// Builds an image of a context by the text of a Dockerfile; `more` are words for `docker build`.
    pub(super) fn build(&self, tag: &str, text: &str, context: &Path, more: &[&str]) {
        let file = self.folder.join("Dockerfile");
        fs::write(&file, text).expect("a writable folder");
        let (file, context) = (file.to_str().expect("UTF-8"), context.to_str().expect("UTF-8"));
        let words = ["build", "--quiet", "--tag", tag, "--file", file];
        self.ask(&[&words[..], more, &[context]].concat());
    }
}

/// Busybox under all its names, and what it needs if it is not static.
pub(super) fn busybox(root: &Path) {
    let program = find("busybox").expect("it was looked for");
    place(&program, &root.join("bin/busybox"));
    libraries(&program).iter().for_each(|file| place(file, &below(root, file)));
    let output = Command::new(&program).arg("--list").output().expect("busybox starts");
    for name in String::from_utf8_lossy(&output.stdout).lines().filter(|name| *name != "busybox") {
        symlink("busybox", root.join("bin").join(name)).expect("a writable folder");
    }
    fs::create_dir_all(root.join("tmp")).expect("a writable folder");
}

/// The files that a program is linked with at its start, the loader among them; none for a static one.
pub(super) fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("ldd starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

pub(super) fn below(root: &Path, file: &Path) -> PathBuf {
    root.join(file.strip_prefix("/").expect("an absolute path"))
}

/// Puts the file that `from` leads to at `to`; a second copy of the same replaces the first.
pub(super) fn place(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("it has a folder")).expect("a writable folder");
    fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}
