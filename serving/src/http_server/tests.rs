use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;

const LIMITS: Limits = Limits {
    connections: 4,
    head: Duration::from_secs(30),
    response: Duration::from_secs(30),
    ..Limits::ONE_REQUEST
};
const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n";

fn named(limits: Limits) -> Server {
    Server { name: "test", paths: &["/a"], limits, metrics: ServerMetrics::default() }
}

async fn path(request: HttpRequest) -> Response {
    text(StatusCode::OK, request.path().to_owned())
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Starts a server that answers every request with its path.
fn server(limits: Limits) -> (SocketAddr, Stages, JoinHandle<()>) {
    let ((listener, address), stages) = (listen(), Stages::default());
    let serving = serve(listener, Plaintext, named(limits), stages.clone(), path);
    (address, stages, tokio::spawn(serving))
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
async fn responses() {
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
async fn a_broken_body_follows_its_head() {
    let (listener, address) = listen();
    let broken = async |_: HttpRequest| Response::new(Body::broken());
    tokio::spawn(serve(listener, Plaintext, named(LIMITS), Stages::default(), broken));
    let answer = send(address, REQUEST).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("\r\ncontent-length: 1\r\n"), "{head}");
    assert_eq!(body, "");
}

#[tokio::test]
async fn idle_connections_do_not_block_requests() {
    let (address, ..) = server(LIMITS);
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = send(address, REQUEST).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    let mut oldest = idle.remove(0);
    let end = oldest.read(&mut [0; 1]).await;
    assert!(end.is_err(), "the oldest was reset: {end:?}");
}

#[tokio::test]
async fn a_received_head_is_read_before_its_connection_is_evicted() {
    // Repeated, because the order of events that are ready at the same time is random.
    for round in 0..20 {
        let (listener, address) = listen();
        let mut honest = TcpStream::connect(address).await.unwrap();
        honest.write_all(REQUEST).await.unwrap();
        let mut idle = Vec::new();
        for _ in 0..200 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let serving = tokio::spawn(serve(listener, Plaintext, named(LIMITS), Stages::default(), path));
        let mut answer = String::new();
        let read = timeout(Duration::from_secs(20), honest.read_to_string(&mut answer)).await.unwrap();
        assert!(read.is_ok() && answer.starts_with("HTTP/1.1 200"), "round {round}: {read:?} {answer:?}");
        serving.abort();
    }
}

#[tokio::test]
async fn a_slow_head_times_out() {
    let (address, ..) = server(Limits { head: Duration::from_millis(200), ..LIMITS });
    let answer = timeout(Duration::from_secs(20), send(address, b"GET /a HTTP/1.1\r\n")).await;
    assert_eq!(answer.as_deref(), Ok(""), "closed without an answer");
}

#[tokio::test]
async fn a_panic_closes_its_connection_only() {
    let (listener, address) = listen();
    let first = Arc::new(AtomicBool::new(true));
    let handler = move |_: HttpRequest| {
        let first = first.clone();
        async move {
            assert!(!first.swap(false, Ordering::SeqCst), "the first call");
            not_found()
        }
    };
    tokio::spawn(serve(listener, Plaintext, named(LIMITS), Stages::default(), handler));
    assert_eq!(send(address, REQUEST).await, "");
    assert!(send(address, REQUEST).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn shutdown_closes_the_port_and_waits_for_a_limited_time() {
    let (address, stages, serving) = server(LIMITS);
    let _idle = TcpStream::connect(address).await.unwrap();
    stages.closing.cancel();
    timeout(Duration::from_secs(20), serving).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

const KEPT: Limits = Limits { connections: 2, ..Limits::KEEP_ALIVE };

/// Sends a request on a connection that is kept, and returns the response.
async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(REQUEST).await.unwrap();
    let mut response = String::new();
    let mut buffer = [0; 4096];
    while !response.ends_with("\r\n\r\n/a") {
        match timeout(Duration::from_secs(20), stream.read(&mut buffer)).await.unwrap() {
            Ok(length @ 1..) => response += std::str::from_utf8(&buffer[..length]).unwrap(),
            _ => break,
        }
    }
    response
}

#[tokio::test]
async fn connections_are_kept_until_the_server_leaves() {
    // Idle connections are closed at once, and not when the time for requests in flight has passed.
    let (address, stages, serving) = server(Limits { shutdown: Duration::from_secs(600), ..KEPT });
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..3 {
        let response = ask(&mut stream).await;
        assert!(response.starts_with("HTTP/1.1 200") && !response.contains("connection: "), "{response}");
    }
    let mut idle = TcpStream::connect(address).await.unwrap();
    ask(&mut idle).await;
    stages.leaving.cancel();
    assert!(ask(&mut stream).await.contains("connection: close\r\n"));
    stages.closing.cancel();
    timeout(Duration::from_secs(20), serving).await.unwrap().unwrap();
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap(), 0, "closed without a reset");
}

#[tokio::test]
async fn the_connection_that_has_been_idle_longest_is_evicted() {
    let (address, ..) = server(KEPT);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        ask(&mut stream).await;
        streams.push(stream);
    }
    // The first connection is now the one that was used last.
    assert!(ask(&mut streams[0]).await.starts_with("HTTP/1.1 200"));
    sleep(Duration::from_millis(1500)).await;
    let mut third = TcpStream::connect(address).await.unwrap();
    assert!(ask(&mut third).await.starts_with("HTTP/1.1 200"));
    assert!(streams[1].read(&mut [0; 1]).await.is_err(), "reset");
    assert!(ask(&mut streams[0]).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_kept_connection_has_timeouts() {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(60));
    let mut end = [0; 1];
    let (address, ..) = server(Limits { head: short, response: long, ..KEPT });
    let mut slow = TcpStream::connect(address).await.unwrap();
    ask(&mut slow).await;
    slow.write_all(b"GET").await.unwrap();
    let ended = timeout(long / 2, slow.read(&mut end)).await.expect("the timeout of a head");
    assert!(!matches!(ended, Ok(1..)), "{ended:?}");

    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = ServerMetrics::registered(&mut registry);
    let (listener, address) = listen();
    let server = Server { metrics, ..named(Limits { head: short, response: short * 3, ..KEPT }) };
    tokio::spawn(serve(listener, Plaintext, server, Stages::default(), path));
    let start = Instant::now();
    let mut idle = TcpStream::connect(address).await.unwrap();
    ask(&mut idle).await;
    let ended = timeout(long, idle.read(&mut end)).await.unwrap();
    assert!(!matches!(ended, Ok(1..)) && start.elapsed() > short * 2, "{:?}", start.elapsed());
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(!text.contains("connections_closed_total{"), "the response was read: {text}");
}

#[tokio::test]
async fn reserved_slots_serve_only_their_paths() {
    let (listener, address) = listen();
    let reserved = Reserved { connections: 2, paths: &["/live"] };
    let release = CancellationToken::new();
    let held = release.clone();
    let handler = move |request: HttpRequest| {
        let held = held.clone();
        async move {
            if request.path() == "/a" {
                held.cancelled().await;
            }
            text(StatusCode::OK, "")
        }
    };
    let server = named(Limits { connections: 1, reserved, ..LIMITS });
    tokio::spawn(serve(listener, Plaintext, server, Stages::default(), handler));
    let busy = tokio::spawn(async move { send(address, REQUEST).await });
    // The only slot is taken as soon as one of these needs a reserved one.
    let other = b"GET /b HTTP/1.1\r\nhost: x\r\n\r\n";
    let refused = async { while !send(address, other).await.starts_with("HTTP/1.1 503") {} };
    timeout(Duration::from_secs(20), refused).await.unwrap();
    assert!(send(address, b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n").await.starts_with("HTTP/1.1 200"));
    release.cancel();
    assert!(busy.await.unwrap().starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn requests_and_closed_connections_are_counted() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = ServerMetrics::registered(&mut registry);
    let (listener, address) = listen();
    let limits = Limits { response: Duration::from_millis(50), head: Duration::from_millis(200), ..LIMITS };
    let server = Server { metrics, ..named(limits) };
    tokio::spawn(serve(listener, Plaintext, server, Stages::default(), path));
    for path in ["/a", "/b", "/a"] {
        send(address, format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await;
    }
    send(address, b"GET").await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "requests_total{server=\"test\",path=\"/a\",code=\"200\"} 2",
        "requests_total{server=\"test\",path=\"other\",code=\"200\"} 1",
        "connections_closed_total{server=\"test\",reason=\"head_timeout\"} 1",
        "connections{server=\"test\"} 0",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[tokio::test]
async fn a_response_that_is_not_read_is_counted() {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = ServerMetrics::registered(&mut registry);
    let (listener, address) = listen();
    let server = Server { metrics, ..named(Limits { response: Duration::from_millis(50), ..LIMITS }) };
    // More than the buffers of both sockets.
    let large = async |_| text(StatusCode::OK, vec![b'x'; 64 << 20]);
    tokio::spawn(serve(listener, Plaintext, server, Stages::default(), large));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    let is_counted = async {
        let mut text = String::new();
        while !text.contains("connections_closed_total{server=\"test\",reason=\"write_timeout\"} 1") {
            sleep(Duration::from_millis(10)).await;
            text.clear();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        }
    };
    timeout(Duration::from_secs(20), is_counted).await.unwrap();
}

#[test]
fn refusals_have_words() {
    use super::connections::Refused;
    assert_eq!([Refused::Full, Refused::Rate].map(Refused::word), ["full", "rate"]);
}
