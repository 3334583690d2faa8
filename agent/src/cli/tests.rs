use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use address::Endpoint;

/// Starts a server that answers one request; with `None` it never answers.
async fn server(answer: Option<&'static str>) -> HttpUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let length = stream.read(&mut request).await.unwrap();
        assert!(request[..length].starts_with(b"POST /drain HTTP/1.1\r\n"));
        match answer {
            Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
            None => std::future::pending().await,
        }
    });
    HttpUrl { endpoint: Endpoint::Ip(address), authority: address.to_string(), path: "/".into() }
}

#[tokio::test]
async fn responses_and_connection_failures() {
    let failed = |reason: &str| LocalCallResult::Failed(reason.to_owned());
    for (answer, expected) in [
        (Some("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nOK"), LocalCallResult::Done),
        (Some("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"), failed("HTTP status 403")),
        (None, failed("no response in time")),
    ] {
        let url = server(answer).await;
        let found = post(&url, "/drain", Instant::now() + Duration::from_millis(500)).await;
        assert_eq!(found, expected);
    }
    let nobody = HttpUrl {
        endpoint: Endpoint::Unix("/nonexistent".into()),
        authority: "localhost".into(),
        path: "/".into(),
    };
    assert_eq!(
        post(&nobody, "/drain", Instant::now() + Duration::from_millis(500)).await,
        LocalCallResult::NotRunning
    );
}
