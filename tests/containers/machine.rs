//! A machine with a real systemd, which is the first process of a container.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kit::authority::{Authority, Issued};
use kit::docker::{Container, Daemon};
use kit::envoy::workspace;
use kit::wait;
use serde_json::Value;

pub(crate) const AGENT: &str = "app-health-agent.service";
pub(crate) const DISCOVERY: &str = "app-health-discovery.service";
const MACHINE: &str = "app-health-test/machine";
/// systemd needs these rights for its cgroups and for the sandboxes of the units. It runs in the
/// namespaces of the container only.
const BOOT: [&str; 14] = [
    "--cgroupns",
    "private",
    "--cap-add",
    "SYS_ADMIN",
    "--security-opt",
    "seccomp=unconfined",
    "--security-opt",
    "apparmor=unconfined",
    "--env",
    "container=docker",
    "--tmpfs",
    "/run",
    "--tmpfs",
    "/tmp",
];
/// On a machine, systemd itself makes the mounts shared; without that a unit sees no credentials.
const INIT: [&str; 3] = ["sh", "-c", "mount --make-rshared / && exec /sbin/init"];
pub(crate) const APPLICATION: &str =
    "mkdir -p /tmp/www && echo yes > /tmp/www/readyz && exec httpd -f -p 8080 -h /tmp/www";

/// Starts a machine with these volumes, or returns `None` if `./justw --debian` made no small Debian.
pub(crate) fn boot<'a>(daemon: &'a Daemon, volumes: &[(PathBuf, &str)]) -> Option<Container<'a>> {
    let debian = workspace().join(".tools/debian.tar");
    if !debian.is_file() {
        return None;
    }
    daemon.ask(&["import", debian.to_str().expect("UTF-8"), MACHINE]);
    let volumes: Vec<String> =
        volumes.iter().map(|(from, to)| format!("{}:{to}:ro", from.display())).collect();
    let volumes: Vec<&str> = volumes.iter().flat_map(|volume| ["--volume", volume]).collect();
    Some(daemon.run(&[&BOOT[..], &volumes, &[MACHINE], &INIT].concat()))
}

pub(crate) async fn until_running(machine: &Container<'_>) {
    let state = || machine.exec(&["systemctl", "is-system-running"]).stdout;
    wait::until_or(|| format!("systemd runs, not {}", state()), async || state().trim() == "running").await;
}

/// Writes the files that the units name, which only root may read.
pub(crate) fn certificates(etc: &Path) {
    let authority = Authority::new();
    let write = |name: &str, text: &str| {
        let file = etc.join(name);
        fs::write(&file, text).expect("a writable folder");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    };
    write("ca.pem", &authority.pem());
    for (name, subject) in
        [("workload", "spiffe://cluster.local/ns/shop/sa/payments"), ("discovery", "discovery.example.com")]
    {
        let Issued { certificate, key } = authority.sign(subject);
        write(&format!("{name}.pem"), &certificate);
        write(&format!("{name}-key.pem"), &key);
    }
}

/// Waits until discovery shows the machine with this condition.
pub(crate) async fn until_condition(machine: &Container<'_>, wanted: &str) {
    let shown = || machine.exec(&["app-health", "workloads", "--output", "json"]).stdout;
    wait::until_or(
        || format!("condition {wanted}: {}\n{}", shown(), journal(machine)),
        async || {
            let Ok(view) = serde_json::from_str::<Value>(&shown()) else { return false };
            let conditions = view["workloads"].as_array().expect("a list").iter();
            conditions.map(|workload| workload["condition"]["status"].as_str()).eq([Some(wanted)])
        },
    )
    .await;
}

pub(crate) fn property(machine: &Container<'_>, unit: &str, name: &str) -> String {
    run(machine, &["systemctl", "show", "--value", "--property", name, unit])
}

pub(crate) fn journal(machine: &Container<'_>) -> String {
    machine.exec(&["journalctl", "--no-pager", "--lines", "60"]).stdout
}

/// Runs a command on the machine and returns its output.
pub(crate) fn run(machine: &Container<'_>, words: &[&str]) -> String {
    let outcome = machine.exec(words);
    assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
    outcome.stdout.trim().to_owned()
}
