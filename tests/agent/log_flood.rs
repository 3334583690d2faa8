//! Clients that send what Envoy might log, and clients that keep the connections of the stats port.

use std::io::ErrorKind;
use std::net::SocketAddr;

use futures_util::future::join_all;
use kit::caller;
use kit::envoy;
use kit::load::{ask, connect};
use kit::net;
use kit::sidecar::Builder;
use kit::wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Requests of each kind to each port.
const REQUESTS: usize = 300;
/// More than the 64 connections that the stats port keeps.
const CONNECTIONS: usize = 100;

/// Sends `request` and waits until the server has read it, which it shows by a response or the end.
async fn send(address: SocketAddr, request: &[u8]) {
    let Ok(mut stream) = connect(None, address).await else { return };
    if stream.write_all(request).await.is_ok() {
        // A server may reset the connection.
        let _ = stream.read(&mut [0; 1024]).await;
    }
}

/// Envoy logs the path of `connect-udp` requests, whatever a listener permits.
#[tokio::test]
async fn no_client_writes_to_the_log() {
    let sidecar = Builder::new("log-flood").start_plain();
    sidecar.until(200, "ready").await;
    let before = sidecar.log().len();
    let upgrade = "Connection: Upgrade\r\nUpgrade:";
    let heads = [
        format!("{upgrade} connect-udp\r\n"),
        "Upgrade: connect-udp\r\n".to_owned(),
        format!("Upgrade: h2c\r\n{upgrade} connect-udp\r\n"),
        format!("{upgrade} connect-udp\r\nCapsule-Protocol: ?1\r\n"),
        format!("{upgrade} websocket\r\n"),
        format!("{upgrade} h2c\r\nHTTP2-Settings: evil\r\n"),
        "Content-Length: evil\r\n".to_owned(),
        "Transfer-Encoding: evil\r\n".to_owned(),
        "Expect: evil\r\n".to_owned(),
        "X-Forwarded-For: evil\r\nTraceparent: evil\r\nX-Request-Id: evil\r\n".to_owned(),
    ];
    let paths = ["/evil", "/.well-known/masque/udp/evil/1/", "/.well-known/masque/udp/evil%25/1/", "evil:80"];
    for port in [15020, 15090] {
        let address = SocketAddr::new(sidecar.ip, port);
        for number in 0..REQUESTS {
            let (head, path) = (&heads[number % heads.len()], paths[number % paths.len()]);
            let request = format!("GET {path} HTTP/1.1\r\nHost: evil\r\n{head}\r\n");
            send(address, request.as_bytes()).await;
        }
        for request in [
            &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..],
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfcevil\r\n\r\n",
            b"EVIL / EVIL/9.9\r\n\r\n",
            b"CONNECT evil:1 HTTP/1.1\r\nHost: evil:1\r\n\r\n",
        ] {
            send(address, request).await;
        }
    }
    // The listener answers again, so the lines about earlier requests are written.
    assert_eq!(caller::get(SocketAddr::new(sidecar.ip, 15020), "/metrics", &[]).await.status, 200);
    let log = sidecar.log();
    let added = &log[before..];
    assert!(!added.contains("evil") && !added.contains("source/"), "{added}");
    assert!(added.len() < 4096, "{} bytes for {} requests:\n{added}", added.len(), 2 * REQUESTS);
}

/// Connections without a request, and connections whose responses are not read.
#[tokio::test]
async fn kept_connections_to_the_stats_port_do_not_keep_a_scraper_out() {
    let sidecar = Builder::new("stats-kept").start();
    sidecar.until(200, "ready").await;
    let address = SocketAddr::new(sidecar.ip, 15090);
    let (hostile, honest) = (net::loopback(), net::loopback());
    let keep = async |number: usize| {
        // The connection may have been closed in favor of a later one, also before this task saw it open.
        let mut stream = match connect(Some(hostile), address).await {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            connected => connected.expect("the port is open"),
        };
        if number.is_multiple_of(2) {
            let _ = stream.write_all(b"GET /stats/prometheus HTTP/1.1\r\nHost: a\r\n\r\n").await;
        }
        Some(stream)
    };
    let kept = join_all((0..CONNECTIONS).map(keep)).await;
    wait::until_or(
        || format!("another address gets Envoy's metrics\n{}", sidecar.log()),
        async || {
            let request = format!("GET /stats/prometheus HTTP/1.1\r\nHost: {address}\r\n\r\n");
            let answer = ask(Some(honest), address, request.as_bytes()).await;
            answer.status == 200 && answer.complete && answer.text().contains("\nenvoy_server_live")
        },
    )
    .await;
    drop(kept);
    let text = caller::get(envoy::probe_listener(sidecar.ip), "/metrics", &[]).await.text();
    let closed = "app_health_agent_connections_closed_total{server=\"stats\",reason=\"evicted\"}";
    assert!(text.contains(closed), "{text}");
}
