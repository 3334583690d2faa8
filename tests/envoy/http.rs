//! Tests of `httpGet` probes through a real Envoy: for each behavior of the application, the
//! response that kubelet gets.

use std::time::Duration;

use kit::app::{Step, answer};
use kit::envoy::Version;
use serde_json::json;

use crate::e2e::{Listens, Row, check, check_with, http_get};

fn row(name: &'static str, steps: Vec<Step>, status: u16, word: &'static str) -> Row {
    Row { name, app: Listens::Plain(steps), prober: http_get(), status, word }
}

fn then(first: impl AsRef<[u8]>, last: Step) -> Vec<Step> {
    vec![Step::Read, Step::Write(first.as_ref().to_vec()), last]
}

fn with_headers(headers: &str) -> Vec<Step> {
    answer(format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n"))
}

#[tokio::test]
async fn statuses() {
    let status = |name, line: &str, expected, word| {
        row(name, answer(format!("HTTP/1.1 {line}\r\nContent-Length: 5\r\n\r\nhello")), expected, word)
    };
    let rows = vec![
        status("ok", "200 OK", 200, ""),
        status("created", "201 Created", 201, ""),
        status("last-success", "299 Odd", 299, ""),
        status("no-reason", "200", 200, ""),
        row("no-content", answer("HTTP/1.1 204 No Content\r\n\r\n"), 204, ""),
        status("multiple-choices", "300 Multiple Choices", 200, ""),
        row("not-modified", answer("HTTP/1.1 304 Not Modified\r\n\r\n"), 200, ""),
        status("use-proxy", "305 Use Proxy", 200, ""),
        status("odd-redirect", "399 Odd", 200, ""),
        status("bad-request", "400 Bad Request", 400, ""),
        status("not-found", "404 Not Found", 404, ""),
        status("gone", "410 Gone", 410, ""),
        status("internal", "500 Internal Server Error", 500, ""),
        status("bad-gateway", "502 Bad Gateway", 502, ""),
        status("unavailable", "503 Service Unavailable", 503, ""),
        status("gateway-timeout", "504 Gateway Timeout", 504, ""),
        status("last-failure", "599 Odd", 599, ""),
        status("beyond", "600 Odd", 527, "protocol"),
        status("three-digits", "999 Odd", 527, "protocol"),
        status("switching", "101 Switching Protocols", 527, "protocol"),
        row("http-1-0", answer("HTTP/1.0 200 OK\r\n\r\nhello"), 200, ""),
        row(
            "continue-first",
            answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            200,
            "",
        ),
        row(
            "hints-first",
            answer(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
            ),
            503,
            "",
        ),
        row("http-0-9", answer("hello"), 527, "protocol"),
        row("not-http", answer("SSH-2.0-OpenSSH_9.2\r\n"), 527, "protocol"),
    ];
    check("http-statuses", rows).await;
}

#[tokio::test]
async fn headers() {
    let many: String = (0..200).map(|number| format!("X-Header-{number}: value\r\n")).collect();
    let large = format!("X-Large: {}\r\n", "x".repeat(70_000));
    let rows = vec![
        row("many", with_headers(&many), 200, ""),
        row("large", with_headers(&large), 200, ""),
        row("obs-text", with_headers("X-Odd: caf\u{e9}\r\n"), 200, ""),
        row("lower-case", answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), 200, ""),
        row("cookie", with_headers("Set-Cookie: secret=1\r\nServer: me\r\n"), 200, ""),
        row(
            "length-and-chunked",
            answer(
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            ),
            200,
            "",
        ),
        row(
            "two-lengths",
            answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
            527,
            "protocol",
        ),
        row(
            "blank-before-colon",
            answer("HTTP/1.1 200 OK\r\nX-Odd : a\r\nContent-Length: 0\r\n\r\n"),
            527,
            "protocol",
        ),
    ];
    check("http-headers", rows).await;
}

#[tokio::test]
async fn connections() {
    let second = Duration::from_millis(900);
    let rows = vec![
        Row { name: "refused", app: Listens::Closed, prober: http_get(), status: 502, word: "refused" },
        row("closed", vec![Step::Read], 520, "closed"),
        row("closed-unread", vec![], 520, "closed"),
        row("reset", vec![Step::Read, Step::Reset], 520, "closed"),
        row("reset-in-headers", then("HTTP/1.1 200 OK\r\nContent-", Step::Reset), 527, "protocol"),
        row("closed-in-headers", answer("HTTP/1.1 200 OK\r\n"), 527, "protocol"),
        row("silent", vec![Step::Hang], 504, "timeout"),
        row("silent-after-read", vec![Step::Read, Step::Hang], 504, "timeout"),
        row("half-closed", vec![Step::Read, Step::HalfClose, Step::Hang], 520, "closed"),
        row(
            "dripping",
            vec![Step::Read, Step::Drip(b"HTTP/1.1 200 OK\r\n".to_vec(), second)],
            504,
            "timeout",
        ),
        Row {
            name: "patient",
            app: Listens::Plain(vec![
                Step::Read,
                Step::Wait(Duration::from_millis(1500)),
                Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
            ]),
            prober: json!({"httpGet": {"port": "PORT"}, "timeoutSeconds": 30}),
            status: 200,
            word: "",
        },
        row(
            "keep-alive",
            vec![
                Step::Read,
                Step::Write(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello".to_vec(),
                ),
                Step::Hang,
            ],
            200,
            "",
        ),
        row(
            "two-answers",
            answer(
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
            ),
            200,
            "",
        ),
    ];
    check("http-connections", rows).await;
}

/// The filter derives the reasons from texts of Envoy, which may change with Envoy's version.
#[tokio::test]
async fn every_reason_of_http_on_the_oldest_envoy() {
    let rows = vec![
        row("ok", answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200, ""),
        row("application", answer("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), 500, ""),
        Row { name: "refused", app: Listens::Closed, prober: http_get(), status: 502, word: "refused" },
        row("closed", vec![Step::Read], 520, "closed"),
        row("timeout", vec![Step::Hang], 504, "timeout"),
        row("protocol", answer("nonsense\r\n\r\n"), 527, "protocol"),
    ];
    check_with("http-floor", Version::Floor, rows).await;
}
