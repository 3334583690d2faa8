use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Sends a request to a server that answers `response`, and returns the request that it received and
/// the result.
async fn ask(response: &'static [u8], limit: usize) -> (String, Result<HttpResponse, RequestError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(response).await.unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let connection = connect(&Endpoint::Ip(address)).await.unwrap();
    let found = connection.get("localhost", "/ready?x", limit).await;
    (server.await.unwrap(), found)
}

#[tokio::test]
async fn one_request_and_its_response() {
    let (request, response) = ask(b"HTTP/1.1 503 No\r\ncontent-length: 5\r\n\r\nLIVE\n", 4096).await;
    assert_eq!(response.unwrap(), HttpResponse { status: 503, body: b"LIVE\n".to_vec(), truncated: false });
    assert!(request.starts_with("GET /ready?x HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("host: localhost\r\n") && request.contains("connection: close\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn reading_stops_at_the_limit() {
    for (limit, body, truncated) in [(3, "LIV", true), (5, "LIVE\n", false), (0, "", true)] {
        let (_, response) = ask(b"HTTP/1.1 200 OK\r\n\r\nLIVE\n", limit).await;
        assert_eq!(response.unwrap(), HttpResponse { status: 200, body: body.into(), truncated }, "{limit}");
    }
}

#[tokio::test]
async fn invalid_responses() {
    for bytes in [b"garbage\r\n\r\n".as_slice(), b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nLIVE"] {
        let (_, response) = ask(bytes, 4096).await;
        assert!(response.is_err(), "{bytes:?}: {response:?}");
    }
}

#[tokio::test]
async fn connection_refused() {
    let nobody = Endpoint::Unix("/nonexistent/admin.sock".into());
    assert!(matches!(connect(&nobody).await, Err(ConnectError::Refused(_))));
}
