use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Sends a request to a server that answers `answer`, and returns the request that it received and
/// the result.
async fn ask(answer: &'static [u8], limit: usize) -> (String, Result<Answer, NoAnswer>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(answer).await.unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let connection = connect(&Endpoint::Ip(address)).await.unwrap();
    let found = connection.get("localhost", "/ready?x", limit).await;
    (server.await.unwrap(), found)
}

#[tokio::test]
async fn one_request_and_its_answer() {
    let (request, answer) = ask(b"HTTP/1.1 503 No\r\ncontent-length: 5\r\n\r\nLIVE\n", 4096).await;
    assert_eq!(answer.unwrap(), Answer { status: 503, body: b"LIVE\n".to_vec(), cut: false });
    assert!(request.starts_with("GET /ready?x HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("host: localhost\r\n") && request.contains("connection: close\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn no_more_is_read_than_the_limit() {
    for (limit, body, cut) in [(3, "LIV", true), (5, "LIVE\n", false), (0, "", true)] {
        let (_, answer) = ask(b"HTTP/1.1 200 OK\r\n\r\nLIVE\n", limit).await;
        assert_eq!(answer.unwrap(), Answer { status: 200, body: body.into(), cut }, "{limit}");
    }
}

#[tokio::test]
async fn what_is_no_answer() {
    for bytes in [b"garbage\r\n\r\n".as_slice(), b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nLIVE"] {
        let (_, answer) = ask(bytes, 4096).await;
        assert!(answer.is_err(), "{bytes:?}: {answer:?}");
    }
}

#[tokio::test]
async fn nobody_there() {
    let nobody = Endpoint::Unix("/nonexistent/admin.sock".into());
    assert!(matches!(connect(&nobody).await, Err(NoConnection::Refused(_))));
}
