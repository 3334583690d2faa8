use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn storage() -> Storage {
    Storage::new(true, false)
}

fn failure(cause: &str) -> Result<(), String> {
    Err(cause.to_owned())
}

/// Changes the configuration every 100 ms and returns when contents are written, each for `length`.
fn starts(mut storage: Storage, length: Duration, until: Duration) -> Vec<Duration> {
    let (mut now, mut starts, mut end) = (Duration::ZERO, Vec::new(), None);
    while now < until {
        if end.is_some_and(|end| now >= end) {
            end = None;
            assert_eq!(storage.finished(now, Ok(())), Outcome::Same);
        }
        storage.changed(now);
        if let Some(write) = storage.start(now) {
            assert_eq!((write, end), (Write::Content, None), "one write at a time");
            starts.push(now);
            end = Some(now + length);
        }
        now += Duration::from_millis(100);
    }
    starts
}

#[test]
fn changes_that_keep_coming_are_written_every_five_seconds() {
    let fast = starts(storage(), Duration::ZERO, seconds(17));
    assert_eq!(fast, [1, 6, 11, 16].map(seconds));
    let slow = starts(storage(), seconds(8), seconds(26));
    assert_eq!(slow, [1, 9, 17, 25].map(seconds), "a slow disk is never written to twice at once");
}

#[test]
fn the_last_change_is_always_written() {
    let mut storage = storage();
    storage.changed(seconds(0));
    assert_eq!(storage.start(seconds(1)), Some(Write::Content));
    // Changes during a write are not in it.
    storage.changed(seconds(2));
    assert_eq!((storage.due(), storage.start(seconds(9))), (None, None));
    storage.finished(seconds(9), Ok(()));
    assert!(!storage.is_idle());
    assert_eq!(storage.start(seconds(9)), Some(Write::Content));
    storage.finished(seconds(9), Ok(()));
    assert!(storage.is_idle());
    // A change just before the end is written without delay.
    storage.changed(seconds(10));
    assert_eq!(storage.start(seconds(10)), None);
    storage.terminate(seconds(10));
    assert_eq!(storage.start(seconds(10)), Some(Write::Content));
    storage.changed(seconds(11));
    storage.finished(seconds(11), Ok(()));
    assert_eq!(storage.start(seconds(11)), Some(Write::Content));
    storage.finished(seconds(11), failure("disk full"));
    assert!(storage.is_idle(), "a failing disk does not delay the end");
}

#[test]
fn failed_writes_are_repeated_with_growing_pauses_and_reported_once_per_cause() {
    let mut storage = storage();
    storage.changed(seconds(0));
    let (mut now, mut pauses) = (seconds(1), Vec::new());
    for (cause, outcome) in [
        ("disk full", Outcome::Failed),
        ("disk full", Outcome::Same),
        ("read-only", Outcome::Failed),
        ("read-only", Outcome::Same),
        ("disk full", Outcome::Failed),
        ("disk full", Outcome::Same),
    ] {
        assert_eq!(storage.start(now), Some(Write::Content));
        assert_eq!(storage.finished(now, failure(cause)), outcome);
        assert_eq!(storage.error(), Some(cause));
        // A change does not shorten the pause.
        storage.changed(now);
        let due = storage.due().unwrap();
        pauses.push(due - now);
        now = due;
    }
    assert_eq!(pauses, [5, 10, 20, 40, 60, 60].map(seconds));
    assert_eq!(storage.start(now), Some(Write::Content));
    assert_eq!(storage.finished(now, Ok(())), Outcome::Recovered);
    assert_eq!(storage.error(), None);
}

#[test]
fn only_a_file_with_the_newest_configuration_is_confirmed() {
    let mut storage = storage();
    storage.confirmed();
    assert!(storage.is_idle(), "no file");
    storage.changed(seconds(0));
    storage.confirmed();
    assert_eq!(storage.start(seconds(1)), Some(Write::Content));
    storage.confirmed();
    storage.finished(seconds(2), Ok(()));
    assert_eq!(storage.start(seconds(2)), Some(Write::Age));
    storage.finished(seconds(2), Ok(()));
    // The file was removed.
    storage.confirmed();
    assert_eq!(storage.start(seconds(3)), Some(Write::Age));
    assert_eq!(storage.finished(seconds(3), failure("not found")), Outcome::Same);
    assert_eq!(storage.due(), Some(seconds(6)));
    assert_eq!(storage.start(seconds(6)), Some(Write::Content));
    storage.finished(seconds(6), failure("disk full"));
    storage.confirmed();
    assert_eq!(storage.due(), Some(seconds(11)), "an older file keeps its age");
    let mut read = Storage::new(true, true);
    read.confirmed();
    assert_eq!(read.start(seconds(1)), Some(Write::Age));
}

#[test]
fn nothing_is_due_if_nothing_is_ever_stored() {
    let mut storage = Storage::new(false, false);
    storage.changed(seconds(0));
    storage.confirmed();
    storage.terminate(seconds(1));
    assert_eq!((storage.due(), storage.start(seconds(9)), storage.is_idle()), (None, None, true));
}
