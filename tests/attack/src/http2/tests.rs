use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use super::*;

const REQUEST: Request<'static> = Request {
    method: "POST",
    path: "/path",
    headers: &[("content-type", "application/grpc")],
    body: Some(b"body"),
};

/// Returns the heads of the first `count` requests that a server reads.
async fn heads(bytes: &[u8], count: usize) -> Vec<String> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let (sender, mut heads) = mpsc::unbounded_channel();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let kind = request.headers().get("content-type").and_then(|value| value.to_str().ok());
        let _ = sender.send(format!("{} {} {}", request.method(), request.uri().path(), kind.unwrap_or("-")));
        async { Ok::<_, std::convert::Infallible>(hyper::Response::new(String::new())) }
    });
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(server), service);
    client.write_all(bytes).await.expect("a buffer");
    let connection = tokio::spawn(connection);
    let mut found = Vec::new();
    while found.len() < count {
        found.push(heads.recv().await.expect("the connection is open"));
    }
    connection.abort();
    found
}

#[tokio::test]
async fn a_server_reads_each_request() {
    assert_eq!(heads(&requests_without_window(REQUEST, 3), 3).await, ["POST /path application/grpc"; 3]);
    let get = Request { method: "GET", headers: &[], body: None, ..REQUEST };
    assert_eq!(heads(&requests_without_window(get, 1), 1).await, ["GET /path -"]);
}

#[test]
fn a_head_is_continued_by_whole_fields() {
    let (begin, more) = endless_head(REQUEST);
    assert!(begin.starts_with(PREFACE));
    assert_eq!(more[3], CONTINUATION);
    assert_eq!(more.len() - 9, 64 * (1 + 1 + "x-header".len() + 1 + "value".len()));
}
