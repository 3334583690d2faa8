//! Tests invalid requests to the webhook, and that they do not affect later ones.

use std::sync::LazyLock;
use std::thread::sleep;
use std::time::Duration;

use crate::webhook_support::{Webhook, review};

/// Values that would need much more memory than their text.
static MANY_VALUES: LazyLock<String> = LazyLock::new(|| format!("[{}1]", "{},".repeat(100_000)));

/// Returns resident memory in KiB.
fn rss(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("memory");
    line.trim().trim_end_matches(" kB").parse().expect("KiB")
}

fn head(change: &str) -> String {
    format!("POST /inject HTTP/1.1\r\nhost: x\r\n{change}\r\n")
}

#[test]
fn invalid_requests_get_an_error_status_and_later_reviews_work() {
    let webhook = Webhook::start("garbage", &[], &[]);
    assert_eq!(webhook.call().post(&review("a")).expect("an answer").status, 200);
    let json = "content-type: application/json\r\n";
    let many: String = (0..80).map(|index| format!("x-{index}: y\r\n")).collect();
    let cases: Vec<(String, u16, &str)> = vec![
        ("GET /inject HTTP/1.1\r\nhost: x\r\n\r\n".into(), 405, "method not allowed\n"),
        ("POST /other HTTP/1.1\r\nhost: x\r\n\r\n".into(), 404, "not found\n"),
        ("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".into(), 404, "not found\n"),
        (
            head("content-length: 2\r\n") + "{}",
            415,
            "content-type: must be application/json, without an encoding\n",
        ),
        (
            head("content-type: text/plain\r\ncontent-length: 2\r\n") + "{}",
            415,
            "content-type: must be application/json, without an encoding\n",
        ),
        (
            head(&format!("{json}content-encoding: gzip\r\ncontent-length: 2\r\n")) + "{}",
            415,
            "content-type: must be application/json, without an encoding\n",
        ),
        (head(&format!("x: {}\r\n", "y".repeat(20_000))), 431, ""),
        (head(&many), 431, ""),
        (head(&format!("{json}content-length: 0\r\n")), 400, "body: must be an AdmissionReview\n"),
        (head(&format!("{json}content-length: 9000000\r\n")), 413, "body: more than 8 MiB\n"),
        (
            head(&format!("{json}content-length: 1\r\n")) + "{",
            400,
            "body: ends too early at line 1 column 1\n",
        ),
        (
            head(&format!("{json}content-length: 2\r\n")) + "{}",
            400,
            "apiVersion: must be admission.k8s.io/v1 or v1beta1\n",
        ),
        (
            head(&format!("{json}content-length: 200\r\n")) + &"[".repeat(200),
            400,
            "body: ends too early at line 1 column 200\n",
        ),
        (
            head(&format!("{json}content-length: {}\r\n", MANY_VALUES.len())) + &MANY_VALUES,
            413,
            "body: more than 100000 JSON values\n",
        ),
        ("nonsense\r\n\r\n".into(), 400, ""),
    ];
    for (request, status, body) in cases {
        let mut call = webhook.call();
        call.send(request.as_bytes()).expect("sent");
        let answer = call.answer().expect("an answer");
        let shown: String = request.chars().take(80).collect();
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{shown}");
        assert_eq!(status == 405, answer.head.to_ascii_lowercase().contains("allow: post"), "{shown}");
        assert!(call.is_closed(), "{shown}");
    }
    let (_, metrics) = webhook.page("/metrics").expect("metrics");
    assert_eq!(
        metrics.matches("\napp_health_webhook_http_errors_total{").count(),
        5,
        "one series per status: {metrics}"
    );
    assert_eq!(webhook.call().post(&review("a")).expect("an answer").status, 200);
}

#[test]
fn an_endless_body_is_limited() {
    let webhook = Webhook::start("endless", &[], &[]);
    assert_eq!(webhook.call().post(&review("a")).expect("an answer").status, 200);
    let before = rss(webhook.pid());
    for _ in 0..4 {
        let mut call = webhook.call();
        call.send(head("content-type: application/json\r\ntransfer-encoding: chunked\r\n").as_bytes())
            .expect("sent");
        let chunk = format!("{:x}\r\n{}\r\n", 65_536, "[".repeat(65_536));
        // Of these 100 MiB, at most 8 MiB are read.
        let sent = (0..1600).take_while(|_| call.send(chunk.as_bytes()).is_ok()).count();
        assert!(sent < 1600, "the body was read completely");
    }
    let grown = rss(webhook.pid()).saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more than before");
    assert_eq!(webhook.call().post(&review("a")).expect("an answer").status, 200);
}

#[test]
fn slow_requests_time_out() {
    let webhook = Webhook::start("slow", &[], &[]);
    let (mut silent, mut dripping, mut body, mut again) =
        (webhook.call(), webhook.call(), webhook.call(), webhook.call());
    body.send((head("content-type: application/json\r\ncontent-length: 100\r\n") + "{").as_bytes())
        .expect("sent");
    assert_eq!(again.post(&review("a")).expect("an answer").status, 200);
    again.send(b"POST /inj").expect("sent");
    let mut closed = false;
    for byte in &b"POST /inject HTTP/1.1"[..18] {
        closed = dripping.send(&[*byte]).is_err();
        if closed {
            break;
        }
        sleep(Duration::from_millis(500));
    }
    assert!(closed, "a slow header section is not waited for");
    assert!(silent.is_closed() && again.is_closed());
    let answer = body.answer().expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (408, "body: incomplete after 10 s\n"));
    assert!(body.is_closed());
    assert_eq!(webhook.call().post(&review("a")).expect("an answer").status, 200);
}
