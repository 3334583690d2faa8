use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;

use super::*;
use crate::webhook::LIMITS;
use injector::settings::{InjectionMode, SidecarMode};
use injector::template::Template;
use serving::http_server::{self, Limits, Plaintext, Server, ServerMetrics, Stages};

#[test]
fn a_panic_is_a_500_response() {
    let error = catch_panic(b"{}", || panic!("made up")).map(|reviewed| reviewed.body).expect_err("an error");
    assert_eq!(error.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(error.1, "internal error, see the log", "the response does not contain the panic message");
}

fn handler(is_api_server_known: bool) -> Handler {
    let settings = Settings {
        sidecar_name: "app-health-proxy".to_owned(),
        mode: InjectionMode::Auto,
        template: Template::built_in("app-health-proxy", None).expect("the built-in template"),
        sidecar_mode: SidecarMode::Native,
        hold: true,
        rewrite_probes: true,
        status_port: 15020,
        ignored_namespaces: Vec::new(),
    };
    Handler::new(watch::channel(Arc::new(settings)).1, Arc::default(), is_api_server_known)
}

/// Serves a handler without TLS.
fn serve(handler: &Handler, limits: Limits) -> SocketAddr {
    let listener = http_server::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = Server { name: "webhook", paths: &[PATH], limits, metrics: ServerMetrics::default() };
    let handler = handler.clone();
    let answer = move |request| handler.clone().answer(request);
    tokio::spawn(http_server::serve(listener, Plaintext, server, Stages::default(), answer));
    address
}

/// Sends a review of `length` bytes that needs no change, from 127.0.0.`last`.
async fn send(address: SocketAddr, last: u8, length: usize) -> TcpStream {
    let review = r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request":
        {"uid": "u", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Node"}, "object": {}}}"#;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, last], 0).into()).expect("loopback");
    let mut stream = socket.connect(address).await.expect("a connection");
    let head = "POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    let request =
        format!("{head}content-length: {length}\r\n\r\n{review}{}", " ".repeat(length - review.len()));
    // A connection that is refused may be closed already.
    let _ = stream.write_all(request.as_bytes()).await;
    stream
}

/// Returns the status line, or an empty string if the connection was closed without one.
async fn status(mut stream: TcpStream) -> String {
    let mut answer = [0; 12];
    let read = timeout(Duration::from_secs(60), stream.read_exact(&mut answer)).await.expect("an end");
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&answer).into_owned())
}

async fn until(condition: impl Fn() -> bool) {
    let polled = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(60), polled).await.expect("the condition becomes true");
}

/// A connection is idle while its body is read, but not while its review waits for its turn.
#[tokio::test]
async fn a_complete_request_keeps_its_connection() {
    let handler = handler(false);
    let turn = handler.shared.turn.clone().acquire_owned().await.expect("a permit");
    let address = serve(&handler, Limits { connections: 1, ..LIMITS });
    let waiting = send(address, 1, LARGE).await;
    let permits = handler.shared.source_permits.of(Some(std::net::IpAddr::from([127, 0, 0, 1]).into()));
    until(|| permits.available_permits() < CONCURRENT_REVIEWS).await;
    assert_eq!(status(send(address, 2, 1000).await).await, "", "all connections are in use");
    let other = serve(&handler, LIMITS);
    assert_eq!(status(send(other, 2, 1000).await).await, "HTTP/1.1 200", "small reviews need no turn");
    drop(turn);
    assert_eq!(status(waiting).await, "HTTP/1.1 200");
}

/// The memory of a body that is under review is in use, whatever other clients send.
#[test]
fn a_body_under_review_keeps_its_memory() {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.expect("a runtime").block_on(async {
        let mut handler = handler(false);
        handler.shared = Share::new(LARGE + LARGE / 2, LARGE);
        let address = serve(&handler, LIMITS);
        // Large reviews wait for the only thread.
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let held = tokio::task::spawn_blocking(move || ended.recv());
        let reviewed = send(address, 1, LARGE).await;
        until(|| handler.shared.turn.available_permits() == 0).await;
        assert_eq!(status(send(address, 2, LARGE).await).await, "HTTP/1.1 503");
        assert_eq!(handler.shared.body_memory.used(), LARGE);
        assert_eq!(
            status(send(address, 2, 1000).await).await,
            "HTTP/1.1 200",
            "small reviews need no thread"
        );
        drop(end);
        held.await.expect("no panic").expect_err("the sender was dropped");
        assert_eq!(status(reviewed).await, "HTTP/1.1 200");
        assert_eq!(handler.shared.body_memory.used(), 0);
    });
}

/// Sends these bytes and returns the status line.
async fn status_of(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The server may answer before it has read everything.
    let _ = stream.write_all(request).await;
    status(stream).await
}

#[tokio::test]
async fn requests_that_are_no_review_are_refused() {
    let address = serve(&handler(false), LIMITS);
    let json = "content-type: application/json";
    for (line, headers, expected) in [
        ("POST /other", json.to_owned(), "404"),
        ("GET /inject", json.to_owned(), "405"),
        ("POST /inject", "content-type: text/plain".to_owned(), "415"),
        ("POST /inject", format!("{json}\r\ncontent-encoding: gzip"), "415"),
        ("POST /inject", format!("{json}\r\ncontent-length: 0"), "400"),
        ("POST /inject", format!("{json}\r\ncontent-length: {}", BODY_LIMIT + 1), "413"),
    ] {
        let request = format!("{line} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n");
        let found = status_of(address, request.as_bytes()).await;
        assert_eq!(found, format!("HTTP/1.1 {expected}"), "{line} {headers}");
    }
}

#[tokio::test]
async fn bodies_have_limits_of_bytes_and_of_values() {
    let address = serve(&handler(false), LIMITS);
    assert_eq!(status(send(address, 1, BODY_LIMIT).await).await, "HTTP/1.1 200", "the limit is inclusive");
    let head = "POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n{}", chunk.repeat((BODY_LIMIT >> 16) + 1));
    assert_eq!(status_of(address, chunked.as_bytes()).await, "HTTP/1.1 413");
    for (values, expected) in [(VALUES_LIMIT, "HTTP/1.1 400"), (VALUES_LIMIT + 1, "HTTP/1.1 413")] {
        // Not a review, but it is parsed only within the limit.
        let body = format!("[{}1]", "1,".repeat(values - 2));
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        assert_eq!(status_of(address, request.as_bytes()).await, expected, "{values} values");
    }
}

#[tokio::test]
async fn a_known_api_server_has_memory_that_no_other_client_gets() {
    for (is_known, shared) in [(false, 24 << 20), (true, 8 << 20)] {
        let handler = handler(is_known);
        for (share, total) in [(&handler.shared, shared), (&handler.api_server, 16 << 20)] {
            let slot = share.body_memory.open(None);
            assert!(slot.grow(total).is_ok() && slot.grow(1).is_err(), "{is_known} {total}");
        }
        let is_single = |length: usize| length >= handler.shared.single;
        assert_eq!(
            (is_single(0), is_single(64 << 10)),
            (is_known, true),
            "others are reviewed one at a time"
        );
    }
}
