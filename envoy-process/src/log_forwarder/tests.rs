use std::io::Write as _;

use serde_json::Value;

use super::*;

/// Returns the messages of the lines that `output` becomes.
fn messages(output: Vec<u8>) -> Vec<String> {
    let (reader, mut writer) = io::pipe().unwrap();
    let writing = thread::spawn(move || writer.write_all(&output).unwrap());
    let mut found = Vec::new();
    let write = |line: String| {
        assert!(line.len() <= stderr::ENVOY_LIMIT);
        let line: Value = serde_json::from_str(&line).unwrap();
        found.push(line["fields"]["message"].as_str().unwrap().to_owned());
    };
    forward(reader, || (), write);
    writing.join().unwrap();
    found
}

#[test]
fn the_last_line_needs_no_line_break() {
    assert_eq!(messages(b"one\n\r\ntwo\r\nthree".to_vec()), ["one", "two", "three"]);
    assert!(messages(Vec::new()).is_empty());
}

#[test]
fn a_long_line_becomes_several() {
    let long = [vec![1; 2 * LINE_LIMIT + 5], b"\nnext\n".to_vec()].concat();
    let lengths: Vec<_> = messages(long).iter().map(String::len).collect();
    assert_eq!(lengths, [LINE_LIMIT, LINE_LIMIT, 5, 4]);
}

#[tokio::test]
async fn the_end_of_the_last_writer_ends_the_forwarder() {
    let (writer, forwarder) = LogForwarder::start().unwrap();
    let other = writer.try_clone().unwrap();
    drop(writer);
    assert!(!forwarder.ended.is_cancelled());
    drop(other);
    forwarder.ended.cancelled().await;
}

/// The supervisor waits again after each other event.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_repeated_keeps_its_deadline() {
    let (writer, mut forwarder) = LogForwarder::start().unwrap();
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
    let (writer, mut forwarder) = LogForwarder::start().unwrap();
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
