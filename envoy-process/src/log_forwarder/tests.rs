use std::io::Write as _;

use super::*;

/// Returns the lines of `output`.
fn lines(output: Vec<u8>) -> Vec<String> {
    let (reader, mut writer) = io::pipe().unwrap();
    let writing = thread::spawn(move || writer.write_all(&output).unwrap());
    let mut found = Vec::new();
    read_lines(reader, || (), |line| found.push(String::from_utf8(line.to_vec()).unwrap()));
    writing.join().unwrap();
    found
}

fn start() -> (PipeWriter, LogForwarder) {
    LogForwarder::start(LogFormat::Json, Arc::new(Metrics::new())).unwrap()
}

#[test]
fn the_last_line_needs_no_line_break() {
    assert_eq!(lines(b"one\n\r\ntwo\r\nthree".to_vec()), ["one", "\r", "two\r", "three"]);
    assert!(lines(Vec::new()).is_empty());
}

#[test]
fn a_long_line_becomes_several() {
    let long = [vec![1; 2 * LINE_LIMIT + 5], b"\nnext\n".to_vec()].concat();
    let lengths: Vec<_> = lines(long).iter().map(String::len).collect();
    assert_eq!(lengths, [LINE_LIMIT, LINE_LIMIT, 5, 4]);
}

#[tokio::test]
async fn the_end_of_the_last_writer_ends_the_forwarder() {
    let (writer, forwarder) = start();
    let other = writer.try_clone().unwrap();
    drop(writer);
    assert!(!forwarder.ended.is_cancelled());
    drop(other);
    forwarder.ended.cancelled().await;
}

/// The supervisor waits again after each other event.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_repeated_keeps_its_deadline() {
    let (writer, mut forwarder) = start();
    let start = Instant::now();
    for _ in 0..10 {
        if tokio::time::timeout(IDLE_TIMEOUT * 3 / 10, forwarder.finish()).await.is_ok() {
            break;
        }
    }
    assert_eq!(start.elapsed(), IDLE_TIMEOUT);
    drop(writer);
}

/// Output that still comes is awaited, but not forever.
#[tokio::test(start_paused = true)]
async fn the_wait_for_a_busy_writer_ends() {
    let (writer, mut forwarder) = start();
    let start = Instant::now();
    let progress = Arc::clone(&forwarder.progress);
    let busy = tokio::spawn(async move {
        loop {
            tokio::time::sleep(IDLE_TIMEOUT / 2).await;
            progress.notify_one();
        }
    });
    forwarder.finish().await;
    assert_eq!(start.elapsed(), FINISH_TIMEOUT);
    busy.abort();
    drop(writer);
}

/// Only Envoy's warnings and errors can have text of a client.
#[test]
fn warnings_beyond_the_limit_are_dropped() {
    let metrics = Arc::new(Metrics::new());
    let mut limit = Limit::new(metrics.clone());
    let line =
        |level: &str| format!("[2026-01-31 10:20:30.400][12][{level}][misc] [a.cc:1] {}", "x".repeat(200));
    let mut admitted = |level: &str| (0..1000).filter(|_| limit.admits(line(level).as_bytes())).count();
    let warnings = admitted("warning");
    assert!((100..300).contains(&warnings), "{warnings}");
    assert!(admitted("error") < 100);
    for level in ["trace", "debug", "info", "critical", "unknown"] {
        assert_eq!(admitted(level), 1000, "{level}");
    }
    assert!((0..1000).all(|_| limit.admits(&[b'x'; 300])), "no line of Envoy's log");
    let dropped = format!("app_health_agent_envoy_log_dropped_lines_total {}", 2000 - warnings);
    let text = metrics.encode();
    assert!(text.lines().any(|line| line.starts_with(dropped.split(' ').next().unwrap())), "{text}");
}
