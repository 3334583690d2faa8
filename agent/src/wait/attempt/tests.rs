use super::*;

fn answer(status: u16, body: &[u8]) -> HttpResponse {
    HttpResponse { status, body: body.to_vec(), truncated: false }
}

fn url(text: &str) -> HttpUrl {
    text.parse().unwrap()
}

#[test]
fn responses_are_classified() {
    let url = url("http://localhost/healthz/ready");
    let not_ready = |reason: &str, held| Attempt::NotReady { reason: reason.to_owned(), held };
    for (status, body, took, expected) in [
        (200, b"ready\n".as_slice(), 1, Attempt::Ready { note: None }),
        (
            200,
            b"ready\nconfiguration from cache, stale: 12m\n",
            1,
            Attempt::Ready { note: Some("configuration from cache, stale: 12m".to_owned()) },
        ),
        (
            503,
            b"clusters not received\nworkers not started\n",
            1,
            not_ready("clusters not received; workers not started", false),
        ),
        (503, b"draining\r\n", 400, not_ready("draining", true)),
        (503, b"", 399, not_ready("HTTP status 503", false)),
        (503, b"\x1b[2J\xff\ta", 1, not_ready("?[2J??a", false)),
        (302, b"", 1, Attempt::UnexpectedStatus(302)),
        (500, b"", 1, Attempt::UnexpectedStatus(500)),
    ] {
        let mut attempts = Attempts::new(&url);
        let hold = attempts.hold(Duration::from_millis(500));
        assert_eq!(
            attempts.classify(&answer(status, body), hold, Duration::from_millis(took)),
            expected,
            "{status} {body:?}"
        );
    }
    let long = reason(&[b'x'; 2000]);
    assert_eq!(long.len(), 1024);
}

#[test]
fn the_wait_parameter_is_sent_until_it_is_rejected() {
    let url = url("http://localhost/ready");
    let mut attempts = Attempts::new(&url);
    let timeout = Duration::from_millis(500);
    let hold = attempts.hold(timeout);
    assert_eq!(attempts.path(hold), "/ready?wait=400");
    assert_eq!(
        attempts.classify(&answer(404, b""), hold, Duration::ZERO),
        Attempt::WaitParameterRejected(404)
    );
    let hold = attempts.hold(timeout);
    assert_eq!(attempts.path(hold), "/ready");
    assert_eq!(attempts.classify(&answer(404, b""), hold, Duration::ZERO), Attempt::UnexpectedStatus(404));
}

#[test]
fn the_wait_parameter_in_the_path() {
    for (text, timeout, path) in [
        ("http://localhost/ready?verbose", 500, "/ready?verbose&wait=400"),
        ("http://localhost/ready", 100, "/ready"),
        ("http://localhost/ready", 60_000, "/ready?wait=30000"),
    ] {
        let url = url(text);
        let attempts = Attempts::new(&url);
        let hold = attempts.hold(Duration::from_millis(timeout));
        assert_eq!(attempts.path(hold), path, "{text} {timeout}");
    }
}
