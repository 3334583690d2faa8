//! Tests of which clients may use the local port.

use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;

use kit::agent;
use kit::app::{App, answer};
use kit::caller;
use kit::envoy;
use kit::not_tested;
use kit::sidecar::Builder;
use kit::wait;
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

#[tokio::test]
async fn only_direct_local_clients_are_accepted() {
    let sidecar = Builder::new("local").start();
    sidecar.until(200, "ready").await;
    let address = sidecar.local_address();
    for (request, lines, status) in [
        ("POST /quitquitquit", "Host: localhost\r\nX-Forwarded-For: 10.0.0.1\r\n", 403),
        ("POST /quitquitquit", "Host: localhost\r\nForwarded: for=127.0.0.1\r\n", 403),
        ("POST /quitquitquit", "Host: localhost\r\nVia: 1.1 proxy\r\n", 403),
        ("POST /quitquitquit", "Host: localhost\r\nOrigin: http://localhost\r\n", 403),
        ("POST /quitquitquit", "Host: localhost\r\nX-Envoy-External-Address: 127.0.0.1\r\n", 403),
        ("POST /quitquitquit", "Host: evil.example\r\n", 403),
        ("GET /debug/state", "Host: 10.0.0.5:15004\r\n", 403),
        ("GET /stats/prometheus", "Host: 10.0.0.5:15020\r\nX-Forwarded-For: 10.0.0.1\r\n", 200),
        ("GET /quitquitquit", "Host: localhost\r\n", 405),
        ("POST //quitquitquit", "Host: localhost\r\n", 404),
        ("GET /debug/state", "Host: localhost\r\n", 200),
        ("GET /metrics", "Host: [::1]:15004\r\n", 200),
        ("PUT /debug/log?level=loud", "Host: localhost\r\n", 400),
        ("PUT /debug/log?level=debug", "Host: localhost\r\n", 200),
    ] {
        let answer = sidecar.local(request, lines).await;
        assert_eq!(answer.status, status, "{request} {lines:?}: {answer:?}");
    }
    // The agent probes the data path every five seconds and logs that at the level DEBUG.
    wait::until("the log level has changed", async || sidecar.log().contains("DEBUG")).await;

    // Envoy's connections for captured traffic have this source address.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.6:0".parse().expect("an address")).expect("127.0.0.6 is on lo");
    let mut stream = socket.connect(address).await.expect("the port is open");
    stream.write_all(b"POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("a connection");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer");
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");

    // The other ports do not serve these requests.
    for port in [15020, 15021, 15090] {
        let other = SocketAddr::new(sidecar.ip, port);
        let answer = caller::send(other, b"POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert_eq!(answer.status, 404, "{port}: {answer:?}");
    }
    assert_eq!(sidecar.ready("").await.status, 200, "the agent still runs");
}

#[tokio::test]
async fn the_local_server_on_a_unix_socket() {
    let builder = Builder::new("local-unix");
    let socket = format!("unix:{}", builder.folder.join("state/agent.sock").display());
    let app = App::start(builder.ip, answer("HTTP/1.1 200 OK\r\n\r\nmine 1\n")).await;
    let target = app.port().to_string();
    // The application does not listen on 127.0.0.1, so its part is missing from the merged metrics.
    let sidecar = builder.args(&["--local-address", &socket, "--metrics-target", &target]).start();
    sidecar.until(200, "ready").await;
    let metrics = caller::probe(envoy::probe_listener(sidecar.ip), "/stats/prometheus").await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.text().contains("scrape_up{source=\"envoy\",target=\"\"} 1"), "{}", metrics.text());
    let drain = agent::run(&["drain", "--url", &socket], &[]).await;
    assert_eq!(drain.code, Some(0), "{drain:?}");
    sidecar.until(503, "draining").await;
    sidecar.signal(Signal::SIGTERM);
    assert_eq!(sidecar.end().await.0, Some(0));
}

/// Runs `app-health-agent drain` as another user, whose only group beside `group` is `nogroup`.
async fn drain_as(user: u32, group: u32, url: &str) -> agent::Outcome {
    let (user, group) = (format!("--reuid={user}"), format!("--groups={group}"));
    let mut command = tokio::process::Command::new("setpriv");
    command.args([&user, "--regid=65534", &group]).arg(agent::binary()).args(["drain", "--url", url]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    agent::finish(command.spawn().expect("setpriv of util-linux")).await
}

const USER: u32 = 64_001;
const GROUP: u32 = 64_002;
const OTHER_GROUP: u32 = 64_003;

/// First the mode of the socket rejects other users, and then, with a wrong mode, the check of the
/// peer.
#[tokio::test]
async fn only_the_group_may_use_the_socket() {
    if !not_tested::has_root_and("the group of the local socket", &["setpriv"]) {
        return;
    }
    let builder = Builder::new("local-group");
    let socket = builder.folder.join("agent.sock");
    let url = format!("unix:{}", socket.display());
    let sidecar = builder.args(&["--local-address", &url, "--local-group", &GROUP.to_string()]).start();
    sidecar.until(200, "ready").await;
    let found = std::fs::metadata(&socket).expect("the socket");
    assert_eq!((found.gid(), found.mode() & 0o777), (GROUP, 0o660));
    let other = drain_as(USER, OTHER_GROUP, &url).await;
    assert!(other.code == Some(69) && other.stderr.contains("Permission denied"), "the mode: {other:?}");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).expect("root");
    let other = drain_as(USER, OTHER_GROUP, &url).await;
    assert_eq!(other.code, Some(69), "{other:?}");
    assert_eq!(sidecar.ready("").await.status, 200);
    let line = "connection to the local socket rejected uid=64001";
    wait::until_or(|| sidecar.log(), async || sidecar.log().contains(line)).await;
    let member = drain_as(USER, GROUP, &url).await;
    assert_eq!(member.code, Some(0), "{member:?}");
    sidecar.until(503, "draining").await;
}
