//! The shipped systemd units, started by a real systemd, which is the first process of a container.
//! The certificates arrive late.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kit::agent;
use kit::docker::{BUSYBOX, Container, Daemon};
use kit::envoy::{self, Version, workspace};
use kit::{not_tested, wait};

use crate::machine::{
    self, AGENT, APPLICATION, DISCOVERY, certificates, journal, property, run, until_condition, until_running,
};

/// systemd's exit status for credentials that it cannot read.
const CREDENTIALS: &str = "243";
/// A request for the service of payments.yaml to the listener that Envoy gets from discovery.
const REQUEST: &str = "exec 3<>/dev/tcp/127.0.0.1/10000 && \
    printf 'GET /readyz HTTP/1.1\\r\\nHost: payments.shop.example.com\\r\\nConnection: close\\r\\n\\r\\n' >&3 && cat <&3";
const DRAIN: [&str; 4] = ["app-health-agent", "drain", "--url", "unix:/run/app-health/agent.sock"];

pub(crate) async fn units(daemon: &Daemon) {
    let etc = envoy::folder("containers-units");
    let Some(machine) = with_files(daemon, &etc) else {
        return not_tested::report("the systemd units", "`./justw --debian` made no small Debian");
    };
    until_running(&machine).await;
    run(&machine, &["systemd-sysusers"]);
    run(&machine, &["sh", "-c", "echo \"$(hostname -i) discovery.example.com\" >> /etc/hosts"]);
    for unit in [AGENT, DISCOVERY] {
        run(&machine, &["systemd-analyze", "security", "--no-pager", "--threshold=20", unit]);
        // It returns when the process was started, which fails later.
        run(&machine, &["systemctl", "start", unit]);
    }
    for unit in [AGENT, DISCOVERY] {
        wait::until_or(
            || journal(&machine),
            async || {
                restarts(&machine, unit) >= 2 && property(&machine, unit, "ExecMainStatus") == CREDENTIALS
            },
        )
        .await;
    }
    certificates(&etc);
    let network = machine.namespace();
    let _application = daemon.run(&["--network", &network, BUSYBOX, "sh", "-c", APPLICATION]);
    until_condition(&machine, "True").await;

    local_users(&machine);
    until_condition(&machine, "False").await;
    run(&machine, &["app-health-agent", "undrain", "--url", DRAIN[3]]);
    until_condition(&machine, "True").await;

    let before = restarts(&machine, AGENT);
    run(&machine, &["systemctl", "kill", "--signal", "KILL", AGENT]);
    wait::until_or(|| journal(&machine), async || restarts(&machine, AGENT) > before).await;
    until_condition(&machine, "True").await;

    restarted_without_deregistration(&machine).await;

    with_envoy(&machine).await;
    run(&machine, &["systemctl", "stop", AGENT]);
    until_condition(&machine, "False").await;
}

/// Starts the machine with everything from docs/vm-setup.md except certificates; `etc` is its
/// /etc/app-health.
fn with_files<'a>(daemon: &'a Daemon, etc: &Path) -> Option<Container<'a>> {
    let shipped = workspace().join("envoy-config/vm");
    fs::create_dir_all(etc.join("config")).expect("a writable folder");
    for name in ["config/payments.yaml", "agent.env", "discovery.env"] {
        fs::copy(shipped.join(name), etc.join(name)).expect("a shipped file");
    }
    fs::set_permissions(etc, fs::Permissions::from_mode(0o755)).expect("ours");
    let volumes: [(PathBuf, &str); 7] = [
        (etc.to_owned(), "/etc/app-health"),
        (agent::binary(), "/usr/local/bin/app-health-agent"),
        (agent::binary_of("app-health"), "/usr/local/bin/app-health"),
        (Version::Newest.binary(), "/usr/local/bin/envoy"),
        (shipped.join(AGENT), "/etc/systemd/system/app-health-agent.service"),
        (shipped.join(DISCOVERY), "/etc/systemd/system/app-health-discovery.service"),
        (shipped.join("app-health.sysusers.conf"), "/etc/sysusers.d/app-health.conf"),
    ];
    machine::boot(daemon, &volumes)
}

/// Drains the agent as a member of its group, after another user was refused.
fn local_users(machine: &Container<'_>) {
    let as_group = |group: &str| {
        let user = ["setpriv", "--reuid", "65534", "--regid", group, "--clear-groups"];
        machine.exec(&[&user[..], &DRAIN].concat())
    };
    let refused = as_group("65534");
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let member = as_group("app-health");
    assert_eq!(member.code, Some(0), "{member:?}");
}

/// Discovery sees a lost stream and a new one, and no end of the agent.
async fn restarted_without_deregistration(machine: &Container<'_>) {
    let invocation = || property(machine, AGENT, "InvocationID");
    let before = invocation();
    run(machine, &["systemctl", "restart", AGENT]);
    assert_ne!(invocation(), before, "the agent was not restarted");
    until_condition(machine, "True").await;
    let log = machine.exec(&["journalctl", "--no-pager", "--unit", DISCOVERY]).stdout;
    assert!(log.contains("ProbeSucceeded") && !log.contains("Terminating"), "{log}");
    let log = machine.exec(&["journalctl", "--no-pager", "--unit", AGENT]).stdout;
    assert!(log.contains("agent is restarted, its endpoint and Envoy stay"), "{log}");
}

/// Installs the drop-in, with which the agent starts Envoy, and sends a request through that Envoy.
async fn with_envoy(machine: &Container<'_>) {
    let drop_in = workspace().join("envoy-config/vm/app-health-agent-envoy.conf");
    let drop_in = fs::read_to_string(drop_in).expect("a shipped file");
    let folder = format!("/etc/systemd/system/{AGENT}.d");
    let script = format!("mkdir {folder} && cat > {folder}/envoy.conf <<'END'\n{drop_in}\nEND\n");
    run(machine, &["sh", "-c", &script]);
    run(machine, &["systemctl", "daemon-reload"]);
    run(machine, &["systemctl", "restart", AGENT]);
    run(machine, &["app-health-agent", "wait"]);
    until_condition(machine, "True").await;
    let response = || machine.exec(&["bash", "-c", REQUEST]).stdout;
    wait::until_or(
        || format!("a response through Envoy: {}\n{}", response(), journal(machine)),
        async || response().starts_with("HTTP/1.1 200 "),
    )
    .await;
}

fn restarts(machine: &Container<'_>, unit: &str) -> u32 {
    property(machine, unit, "NRestarts").parse().expect("a number")
}
