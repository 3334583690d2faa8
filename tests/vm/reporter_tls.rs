//! Tests of mutual TLS between the agent and the discovery server: names, authorities, and files
//! that change.

use std::net::SocketAddr;

use kit::vm::scripted_ads::{self, Authority, Script, ScriptedAds, Seen};
use kit::wait;
use serde_json::json;

use crate::reporter_support::{AgentConfig, RunningAgent, last_report_is};

const SPIFFE: &str = "spiffe://cluster.local/ns/app-health/sa/discovery";
const RELOADED: &str = "app_health_agent_tls_reload_total{result=\"ok\"}";
const NOT_RELOADED: &str = "app_health_agent_tls_reload_total{result=\"failed\"}";

fn ours() -> Script {
    Script::ours(json!({"session": 17, "heartbeatSeconds": 60}))
}

/// Starts an agent with a certificate of `authority` that reports to `server` and expects `san` in
/// the server's certificate.
fn start(name: &str, server: SocketAddr, authority: &Authority, san: Option<&str>) -> RunningAgent {
    let vm = AgentConfig::probed(name);
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
async fn servers_with_the_expected_name_are_accepted() {
    for (name, certified, san) in [
        ("tls-address", "127.0.0.1", None),
        ("tls-dns", "discovery.example", Some("discovery.example")),
        ("tls-spiffe", SPIFFE, Some(SPIFFE)),
    ] {
        let authority = Authority::new();
        let server = ScriptedAds::start_tls(ours(), authority.acceptor(certified)).await;
        let _vm = start(name, server.address, &authority, san);
        server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    }
}

#[tokio::test]
async fn servers_with_another_name_or_authority_are_rejected() {
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
        let server = ScriptedAds::start_tls(ours(), acceptor).await;
        let vm = start(name, server.address, &authority, san);
        vm.until_disconnected("TLS handshake: ").await;
        vm.until_disconnected(words).await;
        assert_eq!(server.streams(), 0, "{name}");
    }
}

#[tokio::test]
async fn an_unanswered_tls_handshake_times_out() {
    let (address, _) = scripted_ads::mute().await;
    let vm = start("tls-mute", address, &Authority::new(), None);
    vm.until_disconnected("TLS handshake timed out after 5 s").await;
}

#[tokio::test]
async fn a_client_of_another_authority_is_rejected() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = ScriptedAds::start_tls(ours(), authority.acceptor("127.0.0.1")).await;
    let vm = AgentConfig::probed("tls-unknown-client");
    let folder = vm.builder.folder.clone();
    other.write_client(&folder);
    std::fs::write(folder.join("ca.pem"), authority.pem()).expect("a writable folder");
    let file = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let vm = vm
        .args(&["--discovery", &server.address.to_string(), "--discovery-ca", &file("ca.pem")])
        .args(&["--discovery-cert", &file("cert.pem"), "--discovery-key", &file("key.pem")])
        .start();
    vm.until_disconnected("the server rejected the client certificate").await;
    assert_eq!(server.streams(), 0);
}

/// With TLS 1.3 the server verifies the client certificate after the client's handshake.
#[tokio::test]
async fn an_expired_client_certificate_is_logged_once() {
    expired_certificate("tls-expired-client", &[]).await;
}

/// The addresses are tried in random order; the error is the same each time, and names all.
#[tokio::test]
async fn addresses_that_refuse_connections_do_not_hide_an_expired_certificate() {
    let refusing = ["127.0.0.1:9", "127.0.0.2:9"];
    let log = expired_certificate("tls-expired-others", &refusing).await;
    for address in refusing {
        assert!(log.contains(&format!("{address} ({address}): Connection refused")), "{log}");
    }
}

/// Runs an agent with an expired certificate, whose server is one of several, and returns its log.
async fn expired_certificate(name: &str, others: &[&str]) -> String {
    let authority = Authority::new();
    let server = ScriptedAds::start_tls(ours(), authority.acceptor("127.0.0.1")).await;
    let vm = AgentConfig::probed(name);
    let folder = vm.builder.folder.clone();
    authority.write_client(&folder);
    let expired = authority.sign_expired("spiffe://cluster.local/ns/shop/sa/pay");
    std::fs::write(folder.join("cert.pem"), expired.certificate).expect("a writable folder");
    std::fs::write(folder.join("key.pem"), expired.key).expect("a writable folder");
    let file = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let others: Vec<_> = others.iter().flat_map(|address| ["--discovery", address]).collect();
    let vm = vm
        .args(&others)
        .args(&["--discovery", &server.address.to_string(), "--discovery-ca", &file("ca.pem")])
        .args(&["--discovery-cert", &file("cert.pem"), "--discovery-key", &file("key.pem")])
        .start();
    let failures = "app_health_agent_discovery_connects_total{result=\"failed\"}";
    wait::until("three attempts", async || vm.metric(failures).await >= 3).await;
    vm.until_disconnected("because it has expired (--discovery-cert)").await;
    let log = vm.sidecar.log();
    assert_eq!(log.matches("discovery server").count(), 1, "{log}");
    assert_eq!(server.streams(), 0);
    log
}

/// A token authenticates the agent without a client certificate, and is read for each connection.
#[tokio::test]
async fn a_token_is_sent_and_read_again() {
    let authority = Authority::new();
    let server = ScriptedAds::start_tls(ours(), authority.acceptor_of_tokens("127.0.0.1")).await;
    let vm = AgentConfig::probed("tls-token");
    let folder = vm.builder.folder.clone();
    std::fs::write(folder.join("ca.pem"), authority.pem()).expect("a writable folder");
    std::fs::write(folder.join("token"), "first\n").expect("a writable folder");
    let file = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let vm = vm
        .args(&["--discovery", &server.address.to_string(), "--discovery-ca", &file("ca.pem")])
        .args(&["--discovery-token-file", &file("token")])
        .start();
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    assert_eq!(server.authorizations(), ["Bearer first"]);
    std::fs::write(folder.join("token"), "second").expect("a writable folder");
    server.go_away();
    server.until("another stream", |seen| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours())).await;
    assert_eq!(server.authorizations(), ["Bearer first", "Bearer second"]);
    let log = vm.sidecar.log();
    assert!(!log.contains("first") && !log.contains("second"), "{log}");
}

#[tokio::test]
async fn changed_files_are_reloaded_and_no_report_is_lost() {
    let (old, new) = (Authority::new(), Authority::new());
    let server = ScriptedAds::start_tls(ours(), old.acceptor("127.0.0.1")).await;
    let vm = start("tls-rotated", server.address, &old, None);
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
    // From now on the server rejects the old client certificate.
    server.change_tls(new.acceptor("127.0.0.1"));
    new.write_client(&vm.sidecar.folder);
    wait::until("a reload", async || vm.metric(RELOADED).await > 0).await;
    vm.set_healthy(false);
    server.until("unhealthy", |seen| last_report_is(seen, "Unhealthy", "ExecExit")).await;
    let again = |seen: &[Seen]| seen.iter().any(|seen| seen.stream == 1 && seen.is_ours());
    server.until("a stream with the new files", again).await;
    assert!(last_report_is(&server.seen(), "Unhealthy", "ExecExit"));
}

#[tokio::test]
async fn invalid_files_leave_the_previous_certificate_in_use() {
    let authority = Authority::new();
    let server = ScriptedAds::start_tls(ours(), authority.acceptor("127.0.0.1")).await;
    let vm = start("tls-broken", server.address, &authority, None);
    server.until("healthy", |seen| last_report_is(seen, "Healthy", "ProbeSucceeded")).await;
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
async fn missing_files_prevent_the_start() {
    let vm = AgentConfig::probed("tls-none").args(&[
        "--discovery",
        "127.0.0.1:9",
        "--discovery-ca",
        "/nonexistent/ca",
    ]);
    let vm =
        vm.args(&["--discovery-cert", "/nonexistent/cert", "--discovery-key", "/nonexistent/key"]).start();
    let (code, log) = vm.sidecar.end().await;
    assert_eq!(code, Some(64), "{log}");
    assert!(log.contains("--discovery-ca = \"/nonexistent/ca\": No such file"), "{log}");
}
