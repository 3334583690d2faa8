use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use address::{Endpoint, HttpUrl};

fn config(endpoint: Endpoint) -> WaitConfig {
    WaitConfig {
        timeout: Duration::from_secs(20),
        request_timeout: Duration::from_millis(300),
        period: Duration::from_millis(50),
        url: HttpUrl { endpoint, authority: "localhost".into(), path: "/healthz/ready".into() },
        on_timeout: OnTimeout::Fail,
        optional: None,
        no_sidecar: None,
        command: Vec::new(),
        path: Default::default(),
    }
}

/// Starts a server that gives these answers, one per connection, and repeats the last one. An empty
/// answer closes the connection, `-` never answers. Returns the requests too.
async fn server(answers: &'static [&'static str]) -> (Endpoint, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Ip(listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 2048];
            let length = stream.read(&mut request).await.unwrap();
            let head = String::from_utf8_lossy(&request[..length]).into_owned();
            seen.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
            match answers[number.min(answers.len() - 1)] {
                "-" => silent.push(stream),
                answer => stream.write_all(answer.as_bytes()).await.unwrap(),
            }
        }
    });
    (endpoint, requests)
}

const READY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nready\n";
const PENDING: &str = "HTTP/1.1 503 X\r\ncontent-length: 22\r\n\r\nclusters not received\n";
const NOT_FOUND: &str = "HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n";
const FOUND: &str = "HTTP/1.1 302 X\r\nlocation: /\r\ncontent-length: 0\r\n\r\n";

async fn waited(config: &WaitConfig) -> (Result<String, Failure>, Vec<String>) {
    let mut lines = Vec::new();
    let result = wait(config, |line| lines.push(line.to_owned())).await;
    (result, lines)
}

#[tokio::test]
async fn wait_ends_when_the_sidecar_is_ready() {
    for (answers, first_line) in [
        ([READY, READY].as_slice(), None),
        (&[PENDING, READY], Some("clusters not received")),
        (&["", PENDING, READY], Some("connection refused")),
        (&["-", READY], Some("no response in 300ms")),
        (&["garbage\r\n\r\n", READY], Some("no HTTP response")),
        (&["HTTP/1.1 503 X\r\ncontent-length: 9\r\n\r\ndrain", READY], Some("no HTTP response")),
        (&[FOUND, READY], Some("HTTP status 302")),
    ] {
        let answers: &'static [&'static str] = Box::leak(answers.to_vec().into_boxed_slice());
        let (endpoint, requests) = server(answers).await;
        // Only a server that never answers needs a short timeout.
        let (milliseconds, wait) = if answers[0] == "-" { (300, 200) } else { (5000, 4900) };
        let request_timeout = Duration::from_millis(milliseconds);
        let (result, lines) = waited(&WaitConfig { request_timeout, ..config(endpoint) }).await;
        assert!(result.unwrap().starts_with("ready after "), "{answers:?}");
        assert_eq!(lines.first().map(String::as_str), first_line, "{answers:?}");
        let line = format!("GET /healthz/ready?wait={wait} HTTP/1.1");
        assert!(requests.lock().unwrap().iter().all(|request| *request == line));
    }
}

/// The request may take ten minutes and the timeout below is generous: the smaller one counts.
#[tokio::test]
async fn no_request_exceeds_the_timeout() {
    for (answers, reason) in [
        (["-"].as_slice(), "no response in "),
        (&[PENDING, "-"], "clusters not received"),
        (&[FOUND, "-"], "HTTP status 302"),
    ] {
        let answers: &'static [&'static str] = Box::leak(answers.to_vec().into_boxed_slice());
        let (endpoint, _) = server(answers).await;
        let config = WaitConfig {
            timeout: Duration::from_secs(1),
            request_timeout: Duration::from_secs(600),
            ..config(endpoint)
        };
        let (result, _) = tokio::time::timeout(Duration::from_secs(30), waited(&config)).await.unwrap();
        let failure = result.unwrap_err().to_string();
        assert!(failure.starts_with(&format!("not ready after 1s: {reason}")), "{failure}");
    }
}

#[test]
fn pauses_leave_time_for_a_last_request() {
    let millis = Duration::from_millis;
    for (timeout, elapsed, expected) in
        [(1000, 0, 900), (1000, 899, 900), (1000, 900, 1000), (50, 0, 50), (0, 0, 0)]
    {
        assert_eq!(latest_retry(millis(timeout), millis(elapsed)), millis(expected), "{timeout} {elapsed}");
    }
}

#[tokio::test]
async fn the_wait_parameter_is_dropped_after_a_rejection() {
    let (endpoint, requests) = server(&[NOT_FOUND, PENDING, READY]).await;
    let (result, _) = waited(&config(endpoint)).await;
    assert!(result.is_ok());
    let paths: Vec<bool> = requests.lock().unwrap().iter().map(|line| line.contains("wait=")).collect();
    assert_eq!(paths, [true, false, false]);
}

#[tokio::test]
async fn timeout_zero_sends_one_request() {
    let (endpoint, requests) = server(&[PENDING]).await;
    let (result, lines) = waited(&WaitConfig { timeout: Duration::ZERO, ..config(endpoint) }).await;
    let failure = result.unwrap_err();
    assert_eq!(failure.to_string(), "not ready after 0s: clusters not received");
    assert_eq!(failure.code(), 69);
    assert_eq!((requests.lock().unwrap().len(), lines.len()), (1, 0));
}

#[tokio::test]
async fn timeout_fails_or_continues() {
    let (endpoint, _) = server(&[PENDING]).await;
    let short = WaitConfig { timeout: Duration::from_secs(1), ..config(endpoint) };
    let failure = waited(&short).await.0.unwrap_err();
    assert_eq!(failure.to_string(), "not ready after 1s: clusters not received");
    let going_on = waited(&WaitConfig { on_timeout: OnTimeout::Continue, ..short }).await.0.unwrap();
    assert_eq!(going_on, "not ready after 1s: clusters not received; continuing without it");
}

#[tokio::test]
async fn a_sidecar_that_is_optional() {
    let optional = |endpoint| WaitConfig {
        timeout: Duration::from_secs(2),
        optional: Some(Duration::from_millis(200)),
        ..config(endpoint)
    };
    let nobody = Endpoint::Unix("/nonexistent/agent.sock".into());
    let line = waited(&optional(nobody)).await.0.unwrap();
    assert!(line.starts_with("no sidecar: connection refused"), "{line}");
    let (somebody, _) = server(&[PENDING]).await;
    assert_eq!(waited(&optional(somebody)).await.0.unwrap_err().code(), 69);
}

#[test]
fn pauses() {
    let mut pauses = RetryPauses::new(Duration::from_millis(90));
    let early = || Attempt::NotReady { reason: String::new(), held: false };
    let held = Attempt::NotReady { reason: String::new(), held: true };
    for (attempt, millis) in [
        (early(), 25),
        (Attempt::UnexpectedStatus(500), 50),
        (early(), 90),
        (early(), 90),
        (held, 0),
        (early(), 25),
        (Attempt::Refused, 10),
        (Attempt::Closed, 10),
        (Attempt::UnknownName, 90),
        (Attempt::NotResolved, 90),
        (Attempt::TimedOut(Duration::ZERO), 0),
        (Attempt::WaitParameterRejected(404), 0),
    ] {
        assert_eq!(pauses.after(&attempt), Duration::from_millis(millis), "{attempt:?}");
    }
}
