//! Tests of `./justw demo-vm`, and of the example configuration and the systemd units for VMs.

use std::path::Path;
use std::process::Stdio;

use kit::agent;
use kit::envoy::{short_path, workspace};
use kit::net;
use kit::not_tested;
use kit::wait;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

#[tokio::test]
async fn the_scripted_demo_succeeds() {
    let mut demo = Command::new(kit::agent::binary_of("demo-vm"));
    demo.args(["--once", "--addresses", &net::loopbacks(5).to_string()]).kill_on_drop(true);
    demo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = agent::finish(demo.spawn().expect("the demo starts")).await;
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    for wanted in [
        "with 503: removed",
        "hangs: removed",
        "killed: removed after grace period",
        "requests through Envoy",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}: not in {}", outcome.stdout);
    }
}

#[tokio::test]
async fn keys_control_the_demo() {
    let first = net::loopbacks(5);
    let mut demo = Command::new(kit::agent::binary_of("demo-vm"));
    demo.args(["--addresses", &first.to_string()]).kill_on_drop(true);
    demo.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut demo = demo.spawn().expect("the demo starts");
    let mut keys = demo.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(demo.stdout.take().expect("a pipe")).lines();
    let pages = format!("http://{first}:15014/ http://");
    // The effects of a key may appear in any order.
    let steps: [(&[&str], &str); 4] = [
        (&["payments-1: added to Envoy", "payments-3: added to Envoy", &pages], "1"),
        (&["payments-1: application responds with 503", "payments-1: removed from Envoy"], "9"),
        (&["payments-3: agent killed", "payments-3: removed from Envoy"], "1"),
        (&["payments-1: added to Envoy, "], "q"),
    ];
    for (wanted, key) in steps {
        let mut wanted = wanted.to_vec();
        let seen = async {
            while let Ok(Some(line)) = lines.next_line().await {
                wanted.retain(|words| !line.contains(words));
                if wanted.is_empty() {
                    return;
                }
            }
        };
        // The assertion below reports which words are missing after the timeout.
        let _ = tokio::time::timeout(wait::timeout(), seen).await;
        assert!(wanted.is_empty(), "not shown: {wanted:?}");
        keys.write_all(key.as_bytes()).await.expect("the demo reads");
    }
    let rest = async { while let Ok(Some(_)) = lines.next_line().await {} };
    tokio::time::timeout(wait::timeout(), rest).await.expect("the demo ends");
    assert_eq!(demo.wait().await.expect("a child").code(), Some(0));
}

/// Returns the command lines of the processes whose files are in this folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = format!("{}/", folder.display());
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&folder)).collect()
}

#[tokio::test]
async fn killing_the_demo_ends_its_processes() {
    let first = net::loopbacks(5);
    let folder = short_path(&workspace().join("target/demo-vm")).join(first.to_string());
    let mut demo = Command::new(kit::agent::binary_of("demo-vm"));
    demo.args(["--addresses", &first.to_string()]).kill_on_drop(true);
    let mut demo = demo.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the demo starts");
    // Discovery, three agents and Envoy.
    wait::until("five processes", async || processes_of(&folder).len() == 5).await;
    demo.kill().await.expect("the demo runs");
    wait::until("the end of all processes", async || processes_of(&folder).is_empty()).await;
}

#[tokio::test]
async fn the_example_configuration_is_accepted() {
    let config = workspace().join("envoy-config/vm/config");
    let mut check = agent::command_of("app-health", &["discovery", "--check", "--config-dir"]);
    check.arg(config);
    let outcome = agent::finish(check.spawn().expect("the program starts")).await;
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
}

/// Asserts that the command has every flag that the unit file uses.
async fn assert_flags_exist(unit: &str, binary: &str, command: &str) {
    let text = std::fs::read_to_string(workspace().join("envoy-config/vm").join(unit))
        .expect("the unit file exists");
    let help = agent::command_of(binary, &[command, "--help"]).spawn().expect("the program starts");
    let help = agent::finish(help).await.stdout;
    let known = |flag: &str| help.split([' ', '\n', ',', '=']).any(|word| word == flag);
    let start = text.split("ExecStart=").last().expect("a command");
    let lines = start.lines().take_while(|line| !line.trim().is_empty());
    let flags: Vec<&str> =
        lines.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")).collect();
    assert!(flags.len() > 3, "{unit}: {flags:?}");
    for flag in flags {
        assert!(known(flag), "{unit}: {flag} is not in\n{help}");
    }
}

#[tokio::test]
async fn the_systemd_units_use_existing_flags() {
    assert_flags_exist("app-health-discovery.service", "app-health", "discovery").await;
    assert_flags_exist("app-health-agent.service", "app-health-agent", "run").await;
    assert_flags_exist("app-health-agent-envoy.conf", "app-health-agent", "run").await;
}

/// Asserts that the command has every variable that the file of its unit sets, and that no flag of the unit
/// overrides one.
async fn assert_variables_exist(file: &str, unit: &str, binary: &str, command: &str) {
    let read = |name: &str| {
        std::fs::read_to_string(workspace().join("envoy-config/vm").join(name)).expect("a shipped file")
    };
    let (settings, unit) = (read(file), read(unit));
    assert!(unit.contains(&format!("EnvironmentFile=-/etc/app-health/{file}\n")), "{file}");
    let help = agent::command_of(binary, &[command, "--help"]).spawn().expect("the program starts");
    let help = agent::finish(help).await.stdout;
    let set = settings.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let names: Vec<&str> = set.filter(|name| !name.starts_with('#')).collect();
    assert!(!names.is_empty(), "{file}");
    for name in names {
        assert!(help.contains(&format!("[env: {name}=")), "{file}: {name} is not in\n{help}");
        let flag = format!("--{} ", name.trim_start_matches("APP_HEALTH_").to_lowercase().replace('_', "-"));
        assert!(!unit.contains(&flag), "{file}: the unit has {flag}");
    }
}

#[tokio::test]
async fn the_settings_of_the_systemd_units_are_known_variables() {
    assert_variables_exist("agent.env", "app-health-agent.service", "app-health-agent", "run").await;
    assert_variables_exist("discovery.env", "app-health-discovery.service", "app-health", "discovery").await;
}

const UNITS: [&str; 2] = ["app-health-discovery.service", "app-health-agent.service"];

/// The agent keeps the machine's identity when the drop-in gives it an Envoy.
#[test]
fn the_drop_in_keeps_the_flags_of_the_unit() {
    let words = |file: &str| -> Vec<String> {
        let text = std::fs::read_to_string(workspace().join("envoy-config/vm").join(file)).expect("a file");
        let start = text.split("ExecStart=").last().expect("a command").to_owned();
        let lines = start.lines().take_while(|line| line.ends_with('\\') || line.starts_with("    --"));
        lines.map(|line| line.trim_end_matches('\\').trim().to_owned()).collect()
    };
    let (unit, drop_in) = (words("app-health-agent.service"), words("app-health-agent-envoy.conf"));
    let of_no_envoy =
        ["--no-envoy", "--data-path off", "--envoy-readiness off", "--state-dir /run/app-health"];
    let missing: Vec<&str> =
        unit.iter().map(String::as_str).filter(|word| !drop_in.iter().any(|found| found == word)).collect();
    assert_eq!(missing, of_no_envoy);
}

/// A flag that names a file reads the credential, and each credential is used.
#[test]
fn the_systemd_units_use_their_credentials() {
    for unit in UNITS {
        let text = std::fs::read_to_string(workspace().join("envoy-config/vm").join(unit)).expect("a unit");
        let mut loaded: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("LoadCredential=")?.split_once(':'))
            .map(|(name, path)| {
                assert_eq!(path, format!("/etc/app-health/{name}"), "{unit}");
                name
            })
            .collect();
        let mut used: Vec<&str> =
            text.split_whitespace().filter_map(|word| word.strip_prefix("%d/")).collect();
        loaded.sort_unstable();
        used.sort_unstable();
        assert_eq!((loaded.len(), loaded), (3, used), "{unit}");
    }
}

#[tokio::test]
async fn the_systemd_units_are_sandboxed() {
    if !not_tested::has_root_and("the sandbox of the systemd units", &["systemd-analyze"]) {
        return;
    }
    for unit in UNITS {
        let mut rate = Command::new("systemd-analyze");
        rate.args(["security", "--offline=true", "--no-pager", "--threshold=20"]);
        rate.arg(workspace().join("envoy-config/vm").join(unit));
        let rated = rate.output().await.expect("systemd-analyze starts");
        assert!(rated.status.success(), "{unit}: {}", String::from_utf8_lossy(&rated.stdout));
    }
}
