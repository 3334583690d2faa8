//! Envoy's metrics alone.

use super::*;

/// Returns status and body, and whether the connection would be reset.
async fn envoy(port: u16, query: &str) -> (StatusCode, String, bool) {
    let scraper = scraper(Some(port), &[]);
    let (reset, was_reset) = tokio::sync::oneshot::channel();
    let response =
        scraper.envoy(None, &headers(&[(SCRAPE_TIMEOUT, "2")]), query, move || reset.send(()).unwrap()).await;
    let status = response.status();
    let mut body = response.into_body();
    let read = async {
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            text.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        String::from_utf8(text).unwrap()
    };
    tokio::select! {
        text = read => (status, text, false),
        Ok(()) = was_reset => (status, String::new(), true),
    }
}

#[tokio::test]
async fn what_envoy_writes_is_unchanged() {
    let body = "# TYPE a counter\na{} 1\n\n# odd line\nb 2";
    let response: &'static str = format!("HTTP/1.1 200 OK\r\n\r\n{body}").leak();
    let (port, asked) = application(response, true).await;
    let expected = (StatusCode::OK, body.to_owned(), false);
    assert_eq!(envoy(port, "usedonly&filter=x").await, expected);
    assert!(asked.lock().unwrap().starts_with("GET /stats/prometheus?usedonly HTTP/1.1\r\n"));
}

#[tokio::test]
async fn without_metrics_of_envoy_the_status_is_503() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let (missing, _) = application("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", true).await;
    let (silent, _) = application("", false).await;
    for port in [nobody, missing, silent] {
        let (status, text, was_reset) = envoy(port, "").await;
        assert_eq!((status, was_reset), (StatusCode::SERVICE_UNAVAILABLE, false));
        assert_eq!(text, "Envoy's metrics are unavailable\n");
    }
}

/// Otherwise a scraper would take a part for the whole.
#[tokio::test]
async fn a_response_that_ends_early_resets_the_connection() {
    let (cut, _) = application("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\na 1\n", true).await;
    assert!(envoy(cut, "").await.2);
}
