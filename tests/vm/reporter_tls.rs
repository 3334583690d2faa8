//! Tests of mutual TLS between the agent and the discovery server: names, authorities, and files
//! that change.

use std::net::SocketAddr;

use kit::plain_server::{self, Authority, PlainServer, Script, Seen};
use kit::vm::wait;
use serde_json::json;

use crate::reporter_kit::{Running, Vm, is_last};

const SPIFFE: &str = "spiffe://cluster.local/ns/app-health/sa/discovery";
const RELOADED: &str = "app_health_agent_tls_reload_total{result=\"ok\"}";
const NOT_RELOADED: &str = "app_health_agent_tls_reload_total{result=\"failed\"}";

fn ours() -> Script {
    Script::ours(json!({"session": 17, "heartbeatSeconds": 60}))
}

/// Starts an agent with a certificate of `authority` that reports to `server` and expects `san` in
/// the server's certificate.
fn start(name: &str, server: SocketAddr, authority: &Authority, san: Option<&str>) -> Running {
    let vm = Vm::probed(name);
    let folder = vm.builder.folder.clone();
    authority.write_client(&folder);
    let file = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let (ca, cert, key) = (file("ca.pem"), file("cert.pem"), file("key.pem"));
    let vm = vm.args(&["--discovery", &server.to_string(), "--discovery-ca", &ca]);
    let vm = vm.args(&["--discovery-cert", &cert, "--discovery-key", &key]);
    match san {
        Some(san) => vm.args(&["--discovery-san", san]),
        None => vm,
    }
    .start()
}

#[tokio::test]
async fn servers_that_are_who_they_should_be() {
    for (name, certified, san) in [
        ("tls-address", "127.0.0.1", None),
        ("tls-dns", "discovery.example", Some("discovery.example")),
        ("tls-spiffe", SPIFFE, Some(SPIFFE)),
    ] {
        let authority = Authority::new();
        let server = PlainServer::start_tls(ours(), authority.acceptor(certified)).await;
        let _vm = start(name, server.address, &authority, san);
        server.until("healthy", |seen| is_last(seen, "Healthy", "ProbeSucceeded")).await;
    }
}

#[tokio::test]
async fn servers_that_are_not() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (name, acceptor, san, words) in [
        ("tls-wrong-address", authority.acceptor("127.0.0.2"), None, "not valid for name"),
        ("tls-wrong-dns", authority.acceptor("a.example"), Some("b.example"), "not valid for name"),
        (
            "tls-wrong-spiffe",
            authority.acceptor(SPIFFE),
            Some("spiffe://cluster.local/ns/a/sa/b"),
            "NotValidForName",
        ),
        ("tls-dns-for-spiffe", authority.acceptor("127.0.0.1"), Some(SPIFFE), "NotValidForName"),
        ("tls-wrong-authority", other.acceptor("127.0.0.1"), None, "UnknownIssuer"),
        ("tls-wrong-authority-spiffe", other.acceptor(SPIFFE), Some(SPIFFE), "UnknownIssuer"),
    ] {
        let server = PlainServer::start_tls(ours(), acceptor).await;
        let vm = start(name, server.address, &authority, san);
        vm.until_disconnected("TLS handshake: ").await;
        vm.until_disconnected(words).await;
        assert_eq!(server.streams(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_handshake_that_never_ends() {
    let (address, _) = plain_server::mute().await;
    let vm = start("tls-mute", address, &Authority::new(), None);
    vm.until_disconnected("TLS handshake timed out after 5 s").await;
}

#[tokio::test]
async fn a_client_that_the_server_does_not_know() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = PlainServer::start_tls(ours(), authority.acceptor("127.0.0.1")).await;
    let vm = Vm::probed("tls-unknown-client");
    let folder = vm.builder.folder.clone();
    other.write_client(&folder);
    std::fs::write(folder.join("ca.pem"), authority.pem()).expect("a writable folder");
    let file = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let vm = vm
        .args(&["--discovery", &server.address.to_string(), "--discovery-ca", &file("ca.pem")])
        .args(&["--discovery-cert", &file("cert.pem"), "--discovery-key", &file("key.pem")])
        .start();
    vm.until_disconnected("").await;
    assert_eq!(server.streams(), 0);
}

#[tokio::test]
async fn changed_files_are_used_and_no_report_is_lost() {
    let (old, new) = (Authority::new(), Authority::new());
    let server = PlainServer::start_tls(ours(), old.acceptor("127.0.0.1")).await;
    let vm = start("tls-rotated", server.address, &old, None);
    server.until("healthy", |seen| is_last(seen, "Healthy", "ProbeSucceeded")).await;
    // From now on the server rejects the old client certificate.
    server.change_tls(new.acceptor("127.0.0.1"));
    new.write_client(&vm.sidecar.folder);
    wait::until("a reload", async || vm.metric(RELOADED).await > 0).await;
    vm.set(false);
    server.until("unhealthy", |seen| is_last(seen, "Unhealthy", "ExecExit")).await;
    let again = |seen: &[Seen]| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours());
    server.until("a stream with the new files", again).await;
    assert!(is_last(&server.seen(), "Unhealthy", "ExecExit"));
}

#[tokio::test]
async fn broken_files_change_nothing() {
    let authority = Authority::new();
    let server = PlainServer::start_tls(ours(), authority.acceptor("127.0.0.1")).await;
    let vm = start("tls-broken", server.address, &authority, None);
    server.until("healthy", |seen| is_last(seen, "Healthy", "ProbeSucceeded")).await;
    // First a key of another certificate, then no key.
    std::fs::write(vm.sidecar.folder.join("key.pem"), Authority::new().sign("a.example").key)
        .expect("a file");
    wait::until("a failed reload", async || vm.metric(NOT_RELOADED).await == 1).await;
    std::fs::remove_file(vm.sidecar.folder.join("key.pem")).expect("a file");
    wait::until("another failed reload", async || vm.metric(NOT_RELOADED).await == 2).await;
    server.go_away();
    server.until("another stream", |seen| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours())).await;
    assert_eq!((vm.metric(RELOADED).await, vm.metric(NOT_RELOADED).await), (0, 2));
}

#[tokio::test]
async fn files_that_cannot_be_used_at_the_start() {
    let vm =
        Vm::probed("tls-none").args(&["--discovery", "127.0.0.1:9", "--discovery-ca", "/nonexistent/ca"]);
    let vm =
        vm.args(&["--discovery-cert", "/nonexistent/cert", "--discovery-key", "/nonexistent/key"]).start();
    let (code, log) = vm.sidecar.end().await;
    assert_eq!(code, Some(64), "{log}");
    assert!(log.contains("--discovery-ca = \"/nonexistent/ca\": No such file"), "{log}");
}
