use bytes::Bytes;
use http_body_util::Empty;
use tokio::io::AsyncWriteExt as _;

use super::*;

/// Checks the result of a request whose response is `interim`, repeated `times` times, followed by
/// a 200.
async fn check(interim: &str, times: usize, expected: Result<u16, &str>) {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let interim = interim.to_owned();
    let served = tokio::spawn(async move {
        for _ in 0..times {
            if server.write_all(interim.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
    });
    let request = Request::get("/").body(Empty::<Bytes>::new()).expect("a request");
    let status = http1(client, request, async |response| Ok(response.status().as_u16())).await;
    served.await.expect("the server task ends");
    let found = status.as_ref().copied().map_err(|unhealthy| unhealthy.text());
    assert_eq!(found, expected, "{times} times");
}

#[tokio::test]
async fn interim_responses_are_skipped_up_to_a_limit() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    check(interim, 0, Ok(200)).await;
    check(interim, 100, Ok(200)).await;
    check(interim, 1_000_000, Err("headers of more than 64 KiB")).await;
}
