use std::sync::atomic::{AtomicBool, Ordering};

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const LIMITS: Limits =
    Limits { connections: 4, head: Duration::from_secs(30), answer: Duration::from_secs(30) };

fn named(limits: Limits) -> Server {
    Server { name: "test", paths: &["/a"], limits, metrics: Arc::default() }
}

/// Starts a server that answers every call with its path.
fn server(limits: Limits) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap().listen().unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = serve(listener, named(limits), shutdown.clone(), |call: Call| async move {
        text(StatusCode::OK, call.path)
    });
    (address, shutdown, tokio::spawn(serving))
}

/// Sends `request` and reads to the end; returns an empty string if the connection was reset before
/// a response.
async fn send(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        answer.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn what_is_answered_how() {
    let (address, ..) = server(LIMITS);
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\na: {}\r\n\r\n", "x".repeat(9000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
    for (request, status, body) in [
        ("GET /a?b HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 200", "/a"),
        ("GET /a HTTP/1.0\r\n\r\n", "HTTP/1.0 200", "/a"),
        ("GET //a HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 200", "//a"),
        ("GET /%61 HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 200", "/%61"),
        ("GET http://x/a HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 404", "not found\n"),
        ("CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 404", "not found\n"),
        ("GET / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 200", "/"),
        ("GET / HTTP/1.1\r\ncontent-length: 1\r\n\r\n", "HTTP/1.1 413", "request body not allowed\n"),
        (
            "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
            "HTTP/1.1 413",
            "request body not allowed\n",
        ),
        (&long, "HTTP/1.1 431", ""),
        (&many, "HTTP/1.1 431", ""),
        ("garbage\r\n\r\n", "HTTP/1.1 400", ""),
    ] {
        let answer = send(address, request.as_bytes()).await;
        let start: String = request.chars().take(40).collect();
        assert!(answer.starts_with(status), "{start:?}: {answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{start:?}: {answer}");
    }
    let answer = send(address, b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "one request per connection: {answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn an_honest_request_gets_past_idle_connections() {
    let (address, ..) = server(LIMITS);
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = send(address, b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    let mut oldest = idle.remove(0);
    let end = oldest.read(&mut [0; 1]).await;
    assert!(end.is_err(), "the oldest was reset: {end:?}");
}

#[tokio::test]
async fn a_head_that_lies_there_is_read_before_its_place_is_given_away() {
    // Repeated, because the order of events that are ready at the same time is random.
    for round in 0..20 {
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap().listen().unwrap();
        let address = listener.local_addr().unwrap();
        let mut honest = TcpStream::connect(address).await.unwrap();
        honest.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut idle = Vec::new();
        for _ in 0..200 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let handler = |call: Call| async move { text(StatusCode::OK, call.path) };
        let serving = tokio::spawn(serve(listener, named(LIMITS), CancellationToken::new(), handler));
        let mut answer = String::new();
        let read = timeout(Duration::from_secs(20), honest.read_to_string(&mut answer)).await.unwrap();
        assert!(read.is_ok() && answer.starts_with("HTTP/1.1 200"), "round {round}: {read:?} {answer:?}");
        serving.abort();
    }
}

#[tokio::test]
async fn a_head_that_drips_is_cut() {
    let (address, ..) = server(Limits { head: Duration::from_millis(200), ..LIMITS });
    let answer = timeout(Duration::from_secs(20), send(address, b"GET /a HTTP/1.1\r\n")).await;
    assert_eq!(answer.as_deref(), Ok(""), "closed without an answer");
}

#[tokio::test]
async fn a_panic_ends_its_connection_only() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap().listen().unwrap();
    let address = listener.local_addr().unwrap();
    let first = Arc::new(AtomicBool::new(true));
    let handler = move |_: Call| {
        let first = first.clone();
        async move {
            assert!(!first.swap(false, Ordering::SeqCst), "the first call");
            not_found()
        }
    };
    tokio::spawn(serve(listener, named(LIMITS), CancellationToken::new(), handler));
    let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    assert_eq!(send(address, request).await, "");
    assert!(send(address, request).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn shutdown_closes_the_port_and_bounds_the_rest() {
    let (address, shutdown, serving) = server(LIMITS);
    let _idle = TcpStream::connect(address).await.unwrap();
    shutdown.cancel();
    timeout(Duration::from_secs(20), serving).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[test]
fn limits_leave_descriptors_for_other_things() {
    for (descriptors, connections) in [(1_048_576, 64), (104, 64), (64, 24), (40, 8), (0, 8)] {
        assert_eq!(Limits::new(descriptors).connections, connections, "{descriptors}");
    }
}
