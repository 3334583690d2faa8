use std::io::Write as _;

use super::*;

/// Returns the lines of `output`.
fn lines(output: Vec<u8>) -> Vec<String> {
    let (reader, mut writer) = io::pipe().unwrap();
    let writing = thread::spawn(move || writer.write_all(&output).unwrap());
    let mut found = Vec::new();
    read_lines(
        reader,
        || (),
        |line, part| {
            assert_eq!(
                part == Part::Later,
                found.last().is_some_and(|last: &String| last.len() == LINE_LIMIT)
            );
            found.push(String::from_utf8(line.to_vec()).unwrap());
        },
    );
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

fn warning(length: usize) -> Vec<u8> {
    let mut line = b"[2026-01-31 10:20:30.400][12][warning][misc] [a.cc:1] ".to_vec();
    line.resize(length, b'x');
    line
}

fn dropped(metrics: &Metrics) -> u64 {
    let text = metrics.encode();
    let value =
        text.lines().find_map(|line| line.strip_prefix("app_health_agent_envoy_log_dropped_lines_total "));
    value.expect("a counter").parse().expect("a number")
}

#[test]
fn warnings_beyond_the_limit_are_dropped() {
    let metrics = Arc::new(Metrics::new());
    let mut limit = Limit::new(metrics.clone());
    let warning = warning(1024);
    let mut admitted = 0;
    for minute in 0..2 {
        for milli in 0..60_000 {
            let now = Duration::from_millis(minute * 60_000 + milli);
            admitted += u64::from(limit.admits(&warning, Part::First, now));
        }
        let expected = if minute == 0 { 63..=64 } else { 95..=96 };
        assert!(expected.contains(&admitted), "{minute}: {admitted} KiB");
    }
    assert_eq!(dropped(&metrics), 120_000 - admitted);
}

/// Only Envoy's warnings and errors can have text of a client, unless the user lowers the level.
#[test]
fn other_lines_are_not_limited() {
    let mut limit = Limit::new(Arc::new(Metrics::new()));
    let mut admits = |line: &[u8]| limit.admits(line, Part::First, Duration::ZERO);
    while admits(&warning(1024)) {}
    for level in ["trace", "debug", "info", "critical", "unknown"] {
        assert!(admits(format!("[2026-01-31 10:20:30.400][12][{level}][misc] [a.cc:1] text").as_bytes()));
    }
    assert!(admits(b"a line of an access log"));
    assert!(!admits(b"[2026-01-31 10:20:30.400][12][error][misc] [a.cc:1] text"));
}

/// A client may choose the length of the line.
#[test]
fn all_parts_of_a_long_warning_are_limited() {
    let metrics = Arc::new(Metrics::new());
    let mut limit = Limit::new(metrics.clone());
    let mut admitted = usize::from(limit.admits(&warning(LINE_LIMIT), Part::First, Duration::ZERO));
    for _ in 0..100 {
        admitted += usize::from(limit.admits(&[b'x'; LINE_LIMIT], Part::Later, Duration::ZERO));
    }
    assert_eq!((admitted, dropped(&metrics)), (3, 1));
    // What is left of the limit does not admit the end of a line whose middle was dropped.
    assert!(!limit.admits(b"x", Part::Later, Duration::ZERO));
    assert!(limit.admits(b"a line of an access log", Part::First, Duration::ZERO));
}
