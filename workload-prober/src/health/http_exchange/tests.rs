use bytes::Bytes;
use http_body_util::Empty;
use tokio::io::AsyncWriteExt as _;

use super::*;

const TOO_LARGE: &str = "more than 64 KiB of headers, or more than 1024 headers";

/// Checks the result of a request whose response is `part`, repeated `times` times, between `start` and
/// `end`.
async fn check(start: &str, part: &str, times: usize, end: &str, expected: Result<u16, &str>) {
    let (client, mut server) = tokio::io::duplex(1 << 16);
    let [start, part, end] = [start, part, end].map(str::to_owned);
    let served = tokio::spawn(async move {
        let _ = server.write_all(start.as_bytes()).await;
        for _ in 0..times {
            if server.write_all(part.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = server.write_all(end.as_bytes()).await;
    });
    let request = Request::get("/").body(Empty::<Bytes>::new()).expect("a request");
    let status = http1(client, request, async |response| Ok(response.status().as_u16())).await;
    served.await.expect("the server task ends");
    let found = status.as_ref().copied().map_err(|unhealthy| unhealthy.text());
    assert_eq!(found, expected, "{times} times");
}

#[tokio::test]
async fn interim_responses_are_skipped_up_to_a_limit() {
    let (interim, ok) = ("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n");
    check("", interim, 0, ok, Ok(200)).await;
    check("", interim, 100, ok, Ok(200)).await;
    check("", interim, 1_000_000, ok, Err(TOO_LARGE)).await;
}

#[tokio::test]
async fn headers_are_limited_in_number() {
    let ok = "HTTP/1.1 200 OK\r\n";
    check(ok, "a: b\r\n", 1024, "\r\n", Ok(200)).await;
    check(ok, "a: b\r\n", 1025, "\r\n", Err(TOO_LARGE)).await;
}
