//! Tests clients with a valid certificate that use up connections, memory or entries of discovery.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kit::wait;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::Code;
use xds::Variant;
use xds::type_url::LISTENER;

use crate::discovery_support::{
    CLIENT, Discovery, EDS, GATEWAY, NAME, PAY, PAYMENTS, Peer, client, has_machine, health, reporter,
    request, wait_for_page,
};

/// Address of the hostile client.
const HOSTILE: [u8; 4] = [127, 0, 0, 9];
const LIMIT_REACHED: &str = "app_health_discovery_connection_limit_reached_total";

/// Finishes a TLS handshake, or returns `None` if discovery closes the connection.
async fn connect(discovery: &Discovery, tls: &Arc<ClientConfig>) -> Option<TlsStream<TcpStream>> {
    connect_from(HOSTILE, discovery, tls).await
}

async fn connect_from(
    source: [u8; 4],
    discovery: &Discovery,
    tls: &Arc<ClientConfig>,
) -> Option<TlsStream<TcpStream>> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.bind((source, 0).into()).ok()?;
    let stream = socket.connect(discovery.secure).await.ok()?;
    let name = ServerName::try_from(NAME).expect("a name");
    let handshake = TlsConnector::from(tls.clone()).connect(name, stream);
    timeout(Duration::from_secs(2), handshake).await.ok()?.ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_streams_keep_no_agent_out() {
    let discovery = Discovery::start("unused", &["--max-streams", "8"]);
    let tls = discovery.identity(PAYMENTS);
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(connect(&discovery, &tls).await.expect("a connection"));
    }
    let mut honest = Vec::new();
    for _ in 0..3 {
        let first = request(EDS, &[PAY], &CLIENT);
        let mut peer =
            Peer::open(discovery.secure, discovery.identity(GATEWAY), first).await.expect("a client");
        peer.next().await.expect("an assignment");
        honest.push(peer);
        // What was replaced is connected again, and waits.
        held.extend(connect(&discovery, &tls).await);
    }
    assert!(discovery.page("/metrics").contains(LIMIT_REACHED));
    wait_for_page(&discovery.folder, "/healthz/ready", |status, text| {
        status == 200 && text.contains("degraded: all 8 connections in use")
    });
    assert!(discovery.log().contains("all connections in use"), "{}", discovery.log());
    // Connections that never have a stream are closed.
    for mut stream in held {
        let closed = async { while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {} };
        timeout(wait::timeout(), closed).await.expect("the connection is closed");
    }
    for peer in &mut honest {
        assert!(peer.is_quiet().await, "the stream is open");
    }
}

/// Discovery has fewer descriptors than `--max-streams`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_streams_do_not_use_up_the_descriptors() {
    let discovery = Discovery::start_with_descriptors("448:448", &["--accept-rate", "2000"]);
    let tls = discovery.identity(PAYMENTS);
    let mut held = Vec::new();
    for number in 0..200 {
        // One source has at most 32 connections without a stream.
        held.extend(connect_from([127, 0, 9, 1 + number % 20], &discovery, &tls).await);
        if discovery.log().contains("all connections in use") {
            break;
        }
    }
    let mut peer = client(&discovery).await;
    peer.next().await.expect("an assignment");
    let log = discovery.log();
    assert!(
        log.contains("all connections in use") && !log.contains("accepting a connection failed"),
        "{log}"
    );
    drop(held);
}

/// Opens streams and resets them at once, more than HTTP/2 permits, for which the connection is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_are_not_logged() {
    let discovery = Discovery::start("resets", &[]);
    let tls = discovery.identity(PAYMENTS);
    // HPACK: POST, https, `/`, and the authority `a`.
    let head = [0x83, 0x87, 0x84, 0x41, 1, b'a'];
    let mut bytes = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    for stream in (1..400_u32).step_by(2).map(u32::to_be_bytes) {
        bytes.extend(
            [&[0, 0, 6, 1, 4][..], &stream, &head, &[0, 0, 4, 3, 0], &stream, &[0, 0, 0, 8]].concat(),
        );
    }
    for _ in 0..3 {
        let mut stream = connect(&discovery, &tls).await.expect("a connection");
        // The server may close the connection before everything is sent.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.flush().await;
        let closed = async { while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {} };
        timeout(wait::timeout(), closed).await.expect("the connection is closed");
    }
    assert!(!discovery.log().contains("h2::"), "{}", discovery.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_messages_do_not_grow_memory() {
    let discovery = Discovery::start("half-messages", &[]);
    let message = Bytes::from(vec![b'x'; 4 << 20]);
    let before = discovery.memory();
    let mut streams = JoinSet::new();
    for number in 0..16 {
        let tls = discovery.identity(&format!("spiffe://cluster.local/ns/shop/sa/greedy-{number}"));
        let first = request(EDS, &[PAY], &CLIENT);
        let peer = Peer::open_from(HOSTILE, discovery.secure, tls, Variant::Sotw, first).await;
        let mut peer = peer.expect("a stream");
        peer.next().await.expect("an assignment");
        peer.send_incomplete(message.clone()).await;
        streams.spawn(async move { peer.next().await.expect_err("the message never ends").code() });
    }
    let mut most = before;
    while let Some(status) = timeout(Duration::from_millis(50), streams.join_next()).await.transpose() {
        most = most.max(discovery.memory());
        if let Ok(status) = status {
            let status = status.expect("the task does not panic");
            assert!(matches!(status, Code::ResourceExhausted | Code::DeadlineExceeded), "{status:?}");
        }
    }
    let grown = most.saturating_sub(before);
    assert!(grown < 20 << 10, "{grown} KiB for 64 MiB of messages");
    assert!(discovery.page("/metrics").contains("refused_total{reason=\"limit\"}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_certificate_registers_few_machines() {
    let discovery = Discovery::start(
        "machines",
        &["--peer-address-check", "warn", "--accept-rate", "2000", "--max-machines-per-source", "16"],
    );
    let mut registered = Vec::new();
    for number in 1..=40_u8 {
        let address = format!("2001:db8::{number:x}");
        let metadata = [
            ("NAMESPACE", "shop"),
            ("SERVICE_ACCOUNT", "payments"),
            ("INSTANCE_IPS", &*address),
            ("AUTO_REGISTER_GROUP", "payments"),
        ];
        // Streams of one address are limited too, and here each machine has its own.
        let source = [127, 0, 8, number];
        let first = request(LISTENER, &[], &metadata);
        let tls = discovery.identity(PAYMENTS);
        let peer = Peer::open_from(source, discovery.secure, tls, Variant::Sotw, first).await;
        registered.push(peer.expect("a stream"));
    }
    let count = |text: &str| text.matches("\"name\":\"payments-2001-db8").count();
    wait_for_page(&discovery.folder, "/debug/workloads", |_, text| count(text) == 16);
    wait_for_page(&discovery.folder, "/metrics", |_, text| {
        text.contains("app_health_discovery_refused_total{reason=\"limit\"} 24")
    });
    // A machine at another address is registered.
    let mut client = client(&discovery).await;
    let honest = reporter(&discovery).await;
    honest.send(health("")).await;
    client.assignment(has_machine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flapping_machines_of_one_address_cause_few_log_lines() {
    let discovery = Discovery::start("log-lines", &[]);
    let mut machines = Vec::new();
    for number in 1..=5 {
        let address = format!("10.0.9.{number}");
        let metadata = [
            ("NAMESPACE", "shop"),
            ("SERVICE_ACCOUNT", "payments"),
            ("INSTANCE_IPS", &*address),
            ("AUTO_REGISTER_GROUP", "payments"),
        ];
        let (tls, first) = (discovery.identity(PAYMENTS), request(LISTENER, &[], &metadata));
        let peer = Peer::open_from(HOSTILE, discovery.secure, tls, Variant::Sotw, first).await;
        machines.push(peer.expect("a stream"));
    }
    let flap = async |times: usize| {
        for text in ["HTTP status 503", ""].into_iter().cycle().take(times) {
            for machine in &machines {
                machine.send(health(text)).await;
            }
        }
    };
    flap(10).await;
    wait_for_page(&discovery.folder, "/metrics", |_, text| {
        let applied = "app_health_discovery_reports_total{result=\"applied\"} ";
        let applied = text.lines().find_map(|line| line.strip_prefix(applied)?.parse::<u32>().ok());
        applied.is_some_and(|applied| applied >= 40)
    });
    let lines = discovery.log().matches("key=shop/payments-10.0.9.").count();
    assert!((10..40).contains(&lines), "{lines} lines about 5 machines");
    let deadline = Instant::now() + wait::timeout();
    while !discovery.log().contains("log lines suppressed") && Instant::now() < deadline {
        flap(2).await;
        sleep(Duration::from_millis(500)).await;
    }
    assert!(discovery.log().contains("log lines suppressed"), "{}", discovery.log());
}
