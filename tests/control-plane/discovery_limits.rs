//! Tests that clients which occupy connections or handshakes of discovery do not delay other clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use xds::Variant;

use crate::discovery_support::{CLIENT, Discovery, EDS, GATEWAY, NAME, PAY, Peer, request};
use crate::webhook_support::{connect_from, health_checks_are_answered_under_load};

/// Address of a client without a certificate.
const STRANGER: [u8; 4] = [127, 0, 0, 9];

#[test]
fn kept_connections_do_not_block_health_checks() {
    let discovery = Discovery::start("monitoring", &[]);
    health_checks_are_answered_under_load(discovery.monitoring);
}

/// Begins a TLS handshake and does not finish it.
fn begin_handshake(discovery: &Discovery, client: &Arc<ClientConfig>) -> Option<TcpStream> {
    let mut stream = connect_from(STRANGER, discovery.secure).ok()?;
    let name = ServerName::try_from(NAME).expect("a name");
    let mut hello = Vec::new();
    let mut connection = ClientConnection::new(client.clone(), name).expect("a client");
    connection.write_tls(&mut hello).expect("a ClientHello");
    stream.write_all(&hello).ok()?;
    stream.set_nonblocking(true).expect("a socket");
    Some(stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_handshakes_of_a_stranger_do_not_delay_agents() {
    let discovery = Discovery::start("strangers", &[]);
    let client = discovery.trusting(None);
    let mut strangers: Vec<_> = (0..300).filter_map(|_| begin_handshake(&discovery, &client)).collect();
    let mut peers = Vec::new();
    for _ in 0..4 {
        let first = request(EDS, &[PAY], &CLIENT);
        peers.push(Peer::open(discovery.secure, discovery.identity(GATEWAY), first).await.expect("a client"));
        strangers.extend((0..25).filter_map(|_| begin_handshake(&discovery, &client)));
    }
    for peer in &mut peers {
        peer.next().await.expect("an assignment");
    }
    // Everything that the stranger opened before the last agent has been accepted.
    let answered =
        strangers.iter_mut().filter_map(|stream| stream.read(&mut [0; 1]).ok()).filter(|length| *length > 0);
    let answered = answered.count();
    assert!((1..150).contains(&answered), "{answered} handshakes of one source were begun");
    assert!(discovery.page("/metrics").contains("app_health_discovery_refused_total{reason=\"limit\"}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_have_disconnected_in_the_queue_have_not_failed() {
    let discovery = Discovery::start("queue", &[]);
    discovery.signal("STOP");
    // More than a source may fail. The kernel completes the connections.
    for _ in 0..100 {
        let mut agent = connect_from(STRANGER, discovery.secure).expect("room in the queue");
        agent.write_all(b"the begin of a ClientHello").expect("open");
    }
    discovery.signal("CONT");
    let (tls, first) = (discovery.identity(GATEWAY), request(EDS, &[PAY], &CLIENT));
    let peer = Peer::open_from(STRANGER, discovery.secure, tls, Variant::Sotw, first).await;
    peer.expect("a client of the same address").next().await.expect("an assignment");
}
