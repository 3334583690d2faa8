//! Tests of an Envoy that survives the agent that started it: the next agent with the same state directory
//! ends it, and it ends nothing else.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use kit::agent;
use kit::envoy::Version;
use kit::net;
use kit::not_tested;
use kit::process::{children, is_alive};
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::exit::script;
use crate::run::user_config;

/// Writes `cap_net_bind_service+ep` (bit 10) in the form of `vfs_cap_data` version 2.
const SET_CAPABILITY: &str = "import os, struct, sys\n\
    os.setxattr(sys.argv[1], 'security.capability', struct.pack('<5I', 0x02000001, 1 << 10, 0, 0, 0))";
/// User and group of the agent; the kernel clears the signal only for a user that gains a capability.
const USER: u32 = 65534;

/// A process that survives its agent, killed on drop.
struct Survivor(Pid);

impl Drop for Survivor {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = kill(self.0, Signal::SIGKILL);
    }
}

/// Kills the agent, which cannot stop its Envoy then.
async fn kill_agent(sidecar: Sidecar) {
    sidecar.signal(Signal::SIGKILL);
    sidecar.end().await;
}

/// Waits until the Envoy of an earlier agent is gone and the only one is that of `sidecar`.
async fn until_replaced(sidecar: &Sidecar, old: Pid) {
    sidecar.until(200, "ready").await;
    assert!(!is_alive(old), "{}", sidecar.log());
    assert!(sidecar.log().contains("envoy of an agent that was killed still runs"), "{}", sidecar.log());
    assert_eq!(children(sidecar.pid()).len(), 1);
}

#[tokio::test]
async fn an_envoy_with_a_file_capability_is_ended() {
    if !not_tested::has_root_and("an Envoy with a file capability", &["python3", "setpriv"]) {
        return;
    }
    let builder = Builder::bare("leftover-capability");
    let (ip, folder) = (builder.ip, builder.folder.clone());
    let binary = folder.join("envoy");
    std::fs::copy(Version::Newest.binary(), &binary).expect("a writable folder");
    let set = Command::new("python3").args(["-c", SET_CAPABILITY]).arg(&binary).status();
    assert!(set.is_ok_and(|status| status.success()), "the file system has no file capabilities");
    chown(&folder, Some(USER), Some(USER)).expect("root");
    let start = |builder: Builder| {
        let user = USER.to_string();
        let as_user = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
        builder.args(&["--envoy", binary.to_str().expect("a path")]).inside(&as_user).start()
    };
    let first = start(builder);
    first.until(200, "ready").await;
    let old = first.envoy_pid();
    let _survivor = Survivor(old);
    kill_agent(first).await;
    assert!(is_alive(old), "the kernel sends no signal");
    let second = start(Builder::bare_at("leftover-capability", ip));
    until_replaced(&second, old).await;
    let _survivor = Survivor(second.envoy_pid());
    // The copy has 100 MB.
    std::fs::remove_file(&binary).expect("the copy");
}

/// Returns a script that starts Envoy, writes its process id to a file, and ignores SIGTERM.
fn stubborn(folder: &Path) -> (PathBuf, PathBuf) {
    let (envoy, pid) = (Version::Newest.binary(), folder.join("pid"));
    let text = format!(
        "[ \"$1\" = --version ] && exec {envoy} --version\ntrap '' TERM\n{envoy} \"$@\" &\necho $! > {pid}\nwait",
        envoy = envoy.display(),
        pid = pid.display()
    );
    (script(folder, &text), pid)
}

/// The configuration is rendered, merged, or the user's alone.
#[tokio::test]
async fn an_envoy_of_a_script_that_ignores_the_signal_is_ended() {
    for kind in ["rendered", "user-config", "envoy-config"] {
        let name = format!("leftover-{kind}");
        let builder = Builder::bare(&name);
        let (ip, folder) = (builder.ip, builder.folder.clone());
        let (script, pid) = stubborn(&folder);
        let (file, admin) = (folder.join("user.json"), folder.join("admin.sock"));
        let mut config = user_config(ip, 18080);
        if kind == "envoy-config" {
            config["admin"] = json!({"address": {"pipe": {"path": admin}}});
        }
        std::fs::write(&file, config.to_string()).expect("a writable folder");
        let (file, admin) = (file.display().to_string(), format!("unix:{}", admin.display()));
        let flags = match kind {
            "rendered" => vec![],
            "user-config" => vec!["--user-config", &file],
            _ => vec!["--envoy-config", &file, "--admin", &admin, "--data-path", "off"],
        };
        let first = builder.args(&["--envoy", script.to_str().expect("a path")]).args(&flags).start();
        first.until(200, "ready").await;
        let script = first.envoy_pid();
        let old = std::fs::read_to_string(&pid).expect("written by the script");
        let old = Pid::from_raw(old.trim().parse().expect("a number"));
        let _survivors = (Survivor(script), Survivor(old));
        kill_agent(first).await;
        if kind == "user-config" {
            // Envoy is then in a process group whose leader has exited.
            kill(script, Signal::SIGKILL).expect("the script runs");
            wait::until("the script exits", async || !is_alive(script)).await;
        }
        assert!(is_alive(old), "{kind}");
        let second = Builder::again(&name, ip).args(&flags).start();
        until_replaced(&second, old).await;
        assert!(!is_alive(script), "{kind}");
    }
}

#[tokio::test]
async fn a_second_agent_with_the_same_state_directory_is_refused() {
    let first = Builder::new("leftover-shared").start();
    first.until(200, "ready").await;
    let (envoy, ip) = (first.envoy_pid(), net::loopback());
    let (state, binary) = (first.folder.join("state"), Version::Newest.binary());
    let address = |port: u16| format!("{ip}:{port}");
    let (ready, local, probe) = (address(15021), address(15004), address(15020));
    let mut line =
        vec!["run", "--stats-address", "off", "--ready-address", &ready, "--local-address", &local];
    line.extend(["--probe-address", &probe, "--state-dir", state.to_str().expect("a path")]);
    line.extend(["--envoy", binary.to_str().expect("a path")]);
    let second = agent::run(&line, &[]).await;
    assert_eq!(second.code, Some(71), "{second:?}");
    assert!(second.stderr.contains(&format!("the agent with process id {}", first.pid())), "{second:?}");
    assert!(is_alive(envoy));
    assert_eq!(first.ready("").await.status, 200);
}

/// A record of an earlier boot or container can have the id of any process.
#[tokio::test]
async fn a_process_with_the_recorded_id_is_not_touched() {
    let first = Builder::new("leftover-reused").start();
    first.until(200, "ready").await;
    let (ip, record) = (first.ip, first.folder.join("state/envoy-process.json"));
    kill_agent(first).await;
    let mut other = Command::new("sleep").arg("1000").spawn().expect("sleep of coreutils");
    let mut recorded: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&record).expect("a record")).expect("JSON");
    recorded["envoy"]["pid"] = other.id().into();
    std::fs::write(&record, recorded.to_string()).expect("a writable folder");
    let second = Builder::again("leftover-reused", ip).start();
    second.until(200, "ready").await;
    assert!(other.try_wait().expect("a child").is_none(), "{}", second.log());
    other.kill().expect("a child");
    other.wait().expect("a child");
}
