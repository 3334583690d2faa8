use std::sync::Mutex;
use std::sync::mpsc;

use super::*;

type File = Arc<Mutex<Result<String, String>>>;

/// A value that is parsed from the text of `file`.
fn watched(file: &File) -> Watched<u8> {
    let read = {
        let file = file.clone();
        move || file.lock().unwrap().clone()
    };
    Watched::new("1".to_owned(), read, |text: &String| {
        text.parse().map_err(|error| format!("{text}: {error}"))
    })
}

fn write(file: &File, content: Result<&str, &str>) {
    *file.lock().unwrap() = content.map(str::to_owned).map_err(str::to_owned);
}

#[test]
fn each_change_is_returned_once() {
    let file = File::new(Mutex::new(Ok("1".to_owned())));
    let mut watched = watched(&file);
    for (content, expected) in [
        (Ok("1"), None),
        (Ok("2"), Some(Ok(2))),
        (Ok("x"), Some(Err("x: invalid digit found in string"))),
        (Err("gone"), Some(Err("gone"))),
        (Ok("2"), Some(Ok(2))),
    ] {
        write(&file, content);
        assert_eq!(watched.poll(), expected.map(|it| it.map_err(str::to_owned)), "{content:?}");
        assert_eq!(watched.poll(), None, "{content:?} again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_change_keeps_the_value() {
    let file = File::new(Mutex::new(Ok("1".to_owned())));
    let (sender, changes) = mpsc::channel();
    let value = watched(&file).spawn(1, "number", move |value| sender.send(value.copied()).unwrap());
    let after = Duration::from_secs(6);
    for (content, current, seen) in
        [("1", 1, vec![]), ("x", 1, vec![None]), ("3", 3, vec![Some(3)]), ("3", 3, vec![])]
    {
        write(&file, Ok(content));
        tokio::time::sleep(after).await;
        assert_eq!(**value.borrow(), current, "{content}");
        assert_eq!(changes.try_iter().collect::<Vec<_>>(), seen, "{content}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_does_not_delay_a_change() {
    let file = File::new(Mutex::new(Ok("2".to_owned())));
    let (mut watched, start) = (watched(&file), Instant::now());
    for _ in 0..4 {
        let second = Duration::from_secs(1);
        assert!(tokio::time::timeout(second, watched.changed()).await.is_err());
    }
    assert_eq!(watched.changed().await, Ok(2));
    assert_eq!(start.elapsed(), INTERVAL);
}
