//! Tests of response bodies through a real Envoy: kubelet reads 10 KiB before it decides, and
//! no byte of the application's body is passed on.

use std::sync::Arc;

use kit::app::{self, App, Step, answer};
use kit::caller::{self, Answer};
use kit::envoy::Envoy;
use kit::load;
use kit::net;
use kit::pod::Pod;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

const BLANKS: usize = 10_241;

/// The end of a response body.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The body is empty and complete.
    Empty,
    /// The body consists of spaces, after which kubelet closes the connection.
    Blanks,
    /// The body is incomplete, which kubelet counts as an error of the prober.
    Broken,
}

async fn check(name: &str, steps: Vec<Step>, expected: (u16, End)) {
    let ip = net::loopback();
    let app = App::start(ip, steps).await;
    let mut table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}}});
    if name == "stalls" {
        table["/app-health/app/readyz"]["timeoutSeconds"] = 3.into();
    }
    let pod = Pod::start(&format!("body-{name}"), ip, &table).await;
    let answer = probe(&pod).await;
    assert!(answer.body.iter().all(|byte| *byte == b' '), "{name}: {:?}", answer.text());
    assert_eq!((answer.status, end(&answer)), expected, "{name}: {answer:?}");
    pod.envoy.stop().await;
}

/// Probes as kubelet does, which closes the connection once it has read enough of the body.
async fn probe(pod: &Pod) -> Answer {
    let mut stream = TcpStream::connect(pod.listener).await.expect("Envoy listens");
    let request = load::kubelet_request(pod.listener, "/app-health/app/readyz");
    stream.write_all(&request).await.expect("Envoy reads");
    let mut received = Vec::new();
    loop {
        let read = stream.read_buf(&mut received).await.unwrap_or(0);
        let answer = caller::parse(&received);
        if read == 0 || answer.complete || answer.body.len() >= BLANKS {
            return answer;
        }
    }
}

fn end(answer: &Answer) -> End {
    match (answer.body.len(), answer.complete) {
        (BLANKS.., _) => End::Blanks,
        (0, true) => End::Empty,
        (_, _) => End::Broken,
    }
}

fn of_length(length: usize) -> Vec<Step> {
    answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length)))
}

fn chunked(frames: &str) -> Vec<Step> {
    answer(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{frames}"))
}

#[tokio::test]
async fn short_bodies_are_removed() {
    check("none", of_length(0), (200, End::Empty)).await;
    check("small", of_length(5), (200, End::Empty)).await;
    check("failure", answer("HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nsecret"), (500, End::Empty)).await;
    check("chunked", chunked("5\r\nhello\r\n0\r\n\r\n"), (200, End::Empty)).await;
    check("trailers", chunked("5\r\nhello\r\n0\r\nX-Trailer: secret\r\n\r\n"), (200, End::Empty)).await;
    check("until-close", answer("HTTP/1.1 200 OK\r\n\r\nhello"), (200, End::Empty)).await;
}

#[tokio::test]
async fn long_bodies_exceed_kubelets_limit() {
    let endless = vec![Step::Read, Step::Write(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Step::WriteForEver];
    check("endless", endless, (200, End::Blanks)).await;
    let large = [Step::Read, Step::Write(b"HTTP/1.1 503 No\r\nContent-Length: 1000000\r\n\r\n".to_vec())];
    let large = large.into_iter().chain([Step::Write(vec![b'x'; 20_000]), Step::Hang]).collect();
    check("large", large, (503, End::Blanks)).await;
}

#[tokio::test]
async fn truncated_bodies_fail_as_in_kubelet() {
    check("short", answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), (200, End::Broken)).await;
    check("bad-chunk", chunked("5\r\nhello\r\nzz\r\n"), (200, End::Broken)).await;
    check("cut-chunk", chunked("5\r\nhel"), (200, End::Broken)).await;
    let stalls = vec![
        Step::Read,
        Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello".to_vec()),
        Step::Hang,
    ];
    check("stalls", stalls, (200, End::Broken)).await;
}

/// The application resets the connection once the caller has received the head; before that, Envoy
/// would drop the head too.
#[tokio::test]
async fn a_reset_truncates_the_body() {
    let ip = net::loopback();
    let reset = Arc::new(Notify::new());
    let steps = vec![
        Step::Read,
        Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello".to_vec()),
        Step::Until(Arc::clone(&reset)),
        Step::Reset,
    ];
    let app = App::start(ip, steps).await;
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}}});
    let pod = Pod::start("body-reset", ip, &table).await;
    let mut caller = TcpStream::connect(pod.listener).await.expect("Envoy listens");
    let request = load::kubelet_request(pod.listener, "/app-health/app/readyz");
    caller.write_all(&request).await.expect("Envoy reads");
    let mut received = app::read_head(&mut caller).await.expect("a head");
    reset.notify_one();
    // The end of the stream, or a reset.
    let _ = caller.read_to_end(&mut received).await;
    let answer = caller::parse(&received);
    assert!(answer.body.iter().all(|byte| *byte == b' '), "{:?}", answer.text());
    assert_eq!((answer.status, end(&answer)), (200, End::Broken), "{answer:?}");
    pod.envoy.stop().await;
}

/// An endless body costs no memory: Envoy stops reading once the caller has received enough.
#[tokio::test]
async fn an_endless_body_is_not_buffered() {
    let ip = net::loopback();
    let endless = vec![Step::Read, Step::Write(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Step::WriteForEver];
    let app = App::start(ip, endless).await;
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}}});
    let pod = Pod::start("body-memory", ip, &table).await;
    probe(&pod).await;
    let before = idle_memory(&pod.envoy).await;
    for _ in 0..20 {
        assert_eq!(probe(&pod).await.status, 200);
    }
    let after = idle_memory(&pod.envoy).await;
    assert!(after < before + (1 << 20), "{before} bytes before, {after} after");
    pod.envoy.stop().await;
}

/// Returns the bytes that Envoy has allocated when no connection is open.
async fn idle_memory(envoy: &Envoy) -> u64 {
    envoy.until_stat("http.app_health.downstream_cx_active", 0).await;
    envoy.until_stat("cluster.app_health_http.upstream_cx_active", 0).await;
    envoy.stat("server.memory_allocated").await.expect("a gauge")
}
