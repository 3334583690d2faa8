//! Tests of which clients may use the local port.

use std::net::SocketAddr;

use kit::agent;
use kit::app::{App, answer};
use kit::caller;
use kit::envoy;
use kit::sidecar::Builder;
use kit::wait;
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

#[tokio::test]
async fn only_this_machine_and_nobody_in_between() {
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
async fn a_unix_socket_does_as_well() {
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
