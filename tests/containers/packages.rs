//! The Debian packages on a machine with a real systemd: installed, configured as README.Debian says,
//! upgraded, removed and purged.

use std::path::PathBuf;

use kit::docker::{BUSYBOX, Container, Daemon};
use kit::envoy::{self, workspace};
use kit::{not_tested, wait};

use crate::machine::{
    self, AGENT, APPLICATION, DISCOVERY, certificates, property, run, until_condition, until_running,
};

const PACKAGES: [&str; 2] = ["app-health-agent", "app-health-discovery"];
/// Files that an administrator changes; see [`configure`].
const SETTINGS: [&str; 2] = ["/etc/app-health/agent.env", "/etc/app-health/discovery.env"];

#[test]
#[ignore = "needs the packages: ./justw test-packages"]
fn packages() {
    let Some(daemon) = Daemon::start("packages") else { return };
    std::thread::scope(|scope| daemon.spawn(scope, "packages", on_a_machine).join())
        .expect("the case passes");
}

async fn on_a_machine(daemon: &Daemon) {
    let folder = envoy::folder("containers-packages");
    certificates(&folder);
    let volumes: [(PathBuf, &str); 3] = [
        (workspace().join("target/artifacts").join(std::env::consts::ARCH), "/packages"),
        (workspace().join("target/packaging/upgrade"), "/upgrade"),
        (folder, "/certificates"),
    ];
    let Some(machine) = machine::boot(daemon, &volumes) else {
        return not_tested::report("the Debian packages", "`./justw --debian` made no small Debian");
    };
    until_running(&machine).await;

    install(&machine, "/packages");
    assert_eq!(versions(&machine), [concat!(env!("CARGO_PKG_VERSION"), "-1"); 2]);
    for unit in [AGENT, DISCOVERY] {
        assert_eq!(property(&machine, unit, "UnitFileState"), "disabled", "{unit}");
        assert_eq!(property(&machine, unit, "ActiveState"), "inactive", "{unit}");
    }
    run(&machine, &["getent", "group", "app-health"]);
    documented(&machine);

    configure(&machine);
    run(&machine, &["systemctl", "enable", "--now", DISCOVERY, AGENT]);
    let network = machine.namespace();
    let _application = daemon.run(&["--network", &network, BUSYBOX, "sh", "-c", APPLICATION]);
    until_condition(&machine, "True").await;
    run(&machine, &["app-health-agent", "drain", "--url", "unix:/run/app-health/agent.sock"]);
    until_condition(&machine, "False").await;

    let before = [AGENT, DISCOVERY].map(|unit| property(&machine, unit, "MainPID"));
    install(&machine, "/upgrade");
    assert_eq!(versions(&machine), ["99.0.0-1"; 2]);
    for (unit, before) in [AGENT, DISCOVERY].into_iter().zip(before) {
        assert_eq!(property(&machine, unit, "ActiveState"), "active", "{unit}");
        assert_ne!(property(&machine, unit, "MainPID"), before, "{unit} runs the new program");
    }
    for settings in SETTINGS {
        assert!(run(&machine, &["cat", settings]).ends_with("# changed"), "{settings}");
    }
    // The new process has forgotten the drain.
    until_condition(&machine, "True").await;

    run(&machine, &[&["dpkg", "--remove"][..], &PACKAGES].concat());
    for unit in [AGENT, DISCOVERY] {
        assert_eq!(property(&machine, unit, "ActiveState"), "inactive", "{unit}");
    }
    for gone in ["/usr/bin/app-health-agent", "/usr/bin/app-health", "/run/app-health"] {
        assert!(!exists(&machine, gone), "{gone}");
    }
    for kept in SETTINGS.into_iter().chain(["/var/lib/private/app-health/discovery.redb"]) {
        assert!(exists(&machine, kept), "{kept}");
    }

    run(&machine, &[&["dpkg", "--purge"][..], &PACKAGES].concat());
    for gone in SETTINGS.into_iter().chain(["/var/lib/private/app-health", "/var/lib/app-health"]) {
        assert!(!exists(&machine, gone), "{gone}");
    }
    assert!(exists(&machine, "/etc/app-health/workload-key.pem"), "a file of the administrator stays");
    for unit in [AGENT, DISCOVERY] {
        assert_eq!(property(&machine, unit, "LoadState"), "not-found", "{unit}");
        assert!(!exists(&machine, &format!("/etc/systemd/system/multi-user.target.wants/{unit}")));
    }
    wait::until("systemd has no failed unit", async || {
        machine.exec(&["systemctl", "is-system-running"]).stdout.trim() == "running"
    })
    .await;
}

/// Installs the packages of a folder without a question.
fn install(machine: &Container<'_>, folder: &str) {
    let script = format!("DEBIAN_FRONTEND=noninteractive dpkg --install {folder}/*.deb");
    run(machine, &["sh", "-c", &script]);
}

/// Asserts that the manual pages and completions are where the system looks for them.
fn documented(machine: &Container<'_>) {
    for file in [
        "/usr/share/man/man1/app-health-agent-run.1.gz",
        "/usr/share/man/man1/app-health-discovery.1.gz",
        "/usr/share/bash-completion/completions/app-health-agent",
        "/usr/share/zsh/vendor-completions/_app-health",
        "/usr/share/fish/vendor_completions.d/app-health.fish",
        "/usr/share/doc/app-health-agent/third-party.txt.gz",
        "/usr/share/doc/app-health-agent/copyright",
    ] {
        assert!(exists(machine, file), "{file}");
    }
    let first = run(machine, &["app-health-agent", "-V"]);
    assert_eq!(first, concat!("app-health-agent ", env!("CARGO_PKG_VERSION")));
}

/// Does what README.Debian says, and changes each file with settings.
fn configure(machine: &Container<'_>) {
    let script = "cp /certificates/*.pem /etc/app-health/\n\
        chmod 600 /etc/app-health/*-key.pem\n\
        cp /usr/share/doc/app-health-discovery/examples/payments.yaml /etc/app-health/config/\n\
        echo \"$(hostname -i) discovery.example.com\" >> /etc/hosts\n\
        for file in agent discovery; do echo '# changed' >> /etc/app-health/$file.env; done\n\
        app-health discovery --check --config-dir /etc/app-health/config";
    run(machine, &["sh", "-euc", script]);
}

/// Returns the installed version of each package.
fn versions(machine: &Container<'_>) -> Vec<String> {
    let words = ["dpkg-query", "--show", "--showformat", "${Version}\\n"];
    run(machine, &[&words[..], &PACKAGES].concat()).lines().map(str::to_owned).collect()
}

fn exists(machine: &Container<'_>, file: &str) -> bool {
    machine.exec(&["test", "-e", file]).code == Some(0)
}
