use std::io::{BufRead, BufReader};

use super::*;

#[test]
fn lines_beyond_the_limit_are_dropped_and_counted() {
    let (reader, writer) = io::pipe().unwrap();
    let lines = StderrWriter::new(writer);
    // A pipe holds 64 KiB, and so does the queue: most lines fit into neither, and no call blocks.
    for number in 0..10_000 {
        lines.push(format!("{number:099}\n").as_bytes());
    }
    let reader = thread::spawn(move || {
        let lines = BufReader::new(reader).lines().map(Result::unwrap);
        lines.take_while(|line| line != "end").collect::<Vec<_>>()
    });
    // The pipe is read now, so there is room again.
    lines.flush(Duration::from_secs(30));
    lines.push(b"end\n");
    let (mut next, mut missing) = (0, 0);
    for line in reader.join().unwrap() {
        let found: u64 = match line.strip_prefix("app-health-agent: ") {
            Some(gap) => {
                let dropped = gap.split(' ').next().unwrap().parse::<u64>().unwrap();
                missing += dropped;
                next += dropped;
                continue;
            }
            None => line.parse().unwrap(),
        };
        assert_eq!(found, next);
        next += 1;
    }
    assert_eq!(next, 10_000);
    assert!(missing > 5_000, "{missing}");
}

#[test]
fn flush_waits_until_all_lines_are_written() {
    let (reader, writer) = io::pipe().unwrap();
    let lines = StderrWriter::new(writer);
    lines.push(b"one\n");
    lines.push(b"two\n");
    lines.flush(Duration::from_secs(30));
    let read: Vec<String> = BufReader::new(reader).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(read, ["one", "two"]);
}

#[test]
fn a_line_beyond_the_limit_is_dropped() {
    let (reader, writer) = io::pipe().unwrap();
    let lines = StderrWriter::new(writer);
    lines.push(&vec![b'x'; QUEUE_LIMIT + 1]);
    lines.push(b"one\n");
    lines.flush(Duration::from_secs(30));
    let read: Vec<String> = BufReader::new(reader).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(read, ["app-health-agent: 1 lines dropped: stderr was not read", "one"]);
}
