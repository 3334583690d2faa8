//! Tests of states in which Envoy may or may not become ready: LIVE without a configuration from
//! the control plane, a filter that traps, an allow-list, a stale admin socket, and repeated
//! restarts.

use std::os::unix::net::UnixListener;

use kit::envoy;
use kit::load;
use kit::net;
use kit::pod::Pod;
use kit::sidecar::Builder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// A filter that starts as the real one does, and traps at every request.
const TRAPS: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "proxy_abi_version_0_2_1"))
    (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 1024))
    (func (export "proxy_on_vm_start") (param i32 i32) (result i32) (i32.const 1))
    (func (export "proxy_on_configure") (param i32 i32) (result i32) (i32.const 1))
    (func (export "proxy_on_context_create") (param i32 i32))
    (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) unreachable))"#;

/// Envoy is LIVE and has received nothing from its control plane: the agent reports exactly these
/// two conditions, and none that follows from them.
#[tokio::test]
async fn an_envoy_without_configuration_is_live_and_not_ready() {
    let sidecar = Builder::new("stage-dynamic").args(&["--dynamic", "on"]).start();
    sidecar.until(503, "clusters not received\nlisteners not received").await;
    let verbose: Value = serde_json::from_str(&sidecar.ready("?verbose").await.text()).expect("JSON");
    assert_eq!((&verbose["ready"], &verbose["phase"]), (&json!(false), &json!("starting")));
    let reasons: Vec<_> =
        verbose["pending"].as_array().expect("a list").iter().map(|pending| &pending["condition"]).collect();
    assert_eq!(reasons, ["clusters", "listeners"]);
    for met in ["admin", "data-path", "live", "process", "workers"] {
        assert!(verbose["met"].as_array().expect("a list").contains(&json!(met)), "{met}: {verbose}");
    }
}

#[tokio::test]
async fn a_filter_that_traps_is_not_ready() {
    let builder = Builder::new("stage-traps");
    let wasm = builder.folder.join("traps.wasm");
    std::fs::write(&wasm, wat::parse_str(TRAPS).expect("the module is WAT")).expect("a writable folder");
    let sidecar = builder.args(&["--filter-wasm", wasm.to_str().expect("a path")]).start();
    sidecar.until(503, "probe listener answers 503").await;
}

/// An allow-list never blocks the agent itself.
#[tokio::test]
async fn an_allow_list_does_not_apply_to_the_agent() {
    let sidecar = Builder::new("stage-allow").args(&["--allow-from", "10.0.0.0/8"]).start();
    sidecar.until(200, "ready").await;
    let listener = envoy::probe_listener(sidecar.ip);
    let request = load::kubelet_request(listener, "/app-health/~/readyz");
    for (source, status) in [([127, 0, 0, 1], 404), ([127, 0, 0, 9], 0)] {
        let answer = load::ask(Some(source.into()), listener, &request).await;
        assert_eq!(answer.status, status, "{source:?}: {answer:?}");
    }
}

/// A socket on which no process listens, and a regular file, do not prevent Envoy from starting.
#[tokio::test]
async fn files_at_the_path_of_the_admin_socket() {
    for is_socket in [true, false] {
        let builder = Builder::new(&format!("stage-stale-{is_socket}"));
        let state = builder.folder.join("state");
        std::fs::create_dir_all(&state).expect("a writable folder");
        let path = state.join("admin.sock");
        if is_socket {
            drop(UnixListener::bind(&path).expect("a free path"));
        } else {
            std::fs::write(&path, "no socket").expect("a writable folder");
        }
        assert!(path.exists());
        let sidecar = builder.start();
        sidecar.until(200, "ready").await;
    }
}

/// An external Envoy is started and killed ten times and leaves its socket each time: the agent
/// counts ten epochs.
#[tokio::test]
async fn ten_restarts_of_an_external_envoy() {
    let ip = net::loopback();
    let folder = envoy::folder("stage-lives");
    let admin = format!("unix:{}", folder.join("admin.sock").display());
    let listener = format!("http://{}", envoy::probe_listener(ip));
    let watching = Builder::bare("stage-lives-agent")
        .args(&["--no-envoy", "--admin", &admin, "--data-path", &listener])
        .start_plain();
    watching.until(503, "envoy not started").await;
    for epoch in 1..=10 {
        let pod = Pod::start("stage-lives", ip, &json!({})).await;
        watching.until(200, "ready").await;
        let verbose: Value = serde_json::from_str(&watching.ready("?verbose").await.text()).expect("JSON");
        assert_eq!(verbose["epoch"], epoch);
        kill(Pid::from_raw(pod.envoy.pid().cast_signed()), Signal::SIGKILL).expect("Envoy runs");
        watching.until(503, "envoy exited").await;
        pod.envoy.stop().await;
    }
}
