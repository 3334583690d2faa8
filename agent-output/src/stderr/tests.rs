use std::io::{BufRead, BufReader};

use super::*;

#[test]
fn lines_beyond_the_limit_are_dropped_and_counted() {
    let (reader, writer) = io::pipe().unwrap();
    let lines = StderrWriter::new(writer);
    // A pipe holds 64 KiB, and the queue 128 KiB: most lines fit into neither, and no call blocks.
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

/// Nothing is lost while the pipe is read, however slowly, and no call waits for ever if it is not.
#[test]
fn lines_of_envoy_wait_as_long_as_stderr_is_read() {
    let (reader, writer) = io::pipe().unwrap();
    let lines = StderrWriter::new(writer);
    let mut stall = Stall::default();
    let line = |number: usize| format!("{number:0999}\n");
    let fits = (64 * 1024 + ENVOY_LIMIT) / 1000;
    for number in 0..fits + 50 {
        lines.push_when_read(line(number).as_bytes(), &mut stall);
    }
    assert!(stall.0.is_some() && lines.dropped.load(Ordering::Relaxed) > 0, "nothing was read");
    lines.push(b"of the agent\n");
    let reader = thread::spawn(move || {
        let lines = BufReader::new(reader).lines().map(Result::unwrap);
        lines.take_while(|line| line != "end").collect::<Vec<_>>()
    });
    let before = lines.dropped.load(Ordering::Relaxed);
    lines.flush(Duration::from_secs(60));
    for number in 0..1000 {
        lines.push_when_read(line(number).as_bytes(), &mut stall);
    }
    lines.push_when_read(b"end\n", &mut stall);
    assert_eq!(
        (before, lines.dropped.load(Ordering::Relaxed)),
        (0, 0),
        "the line of the agent told the number"
    );
    let read = reader.join().unwrap();
    let last: Vec<_> = (0..1000).map(|number| line(number).trim_end().to_owned()).collect();
    assert_eq!(read[read.len() - 1000..], last);
    let dropped =
        read.iter().find_map(|line| line.strip_suffix(" lines dropped: stderr was not read")).unwrap();
    let dropped: usize = dropped.strip_prefix("app-health-agent: ").unwrap().parse().unwrap();
    assert_eq!(read.len() + dropped, fits + 50 + 2 + 1000, "the lines of Envoy, and two of the agent");
}
