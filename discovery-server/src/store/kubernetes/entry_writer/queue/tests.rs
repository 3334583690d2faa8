use std::time::Duration;

use super::Queue;
use discovery::objects::Key;

fn key(name: &str) -> Key {
    Key::new("shop", name)
}

/// Returns the names of all entries that are popped at a second.
fn pop_all(queue: &mut Queue, second: u64) -> String {
    std::iter::from_fn(|| queue.pop(Duration::from_secs(second))).map(|(_, key)| key.name).collect()
}

#[test]
fn urgent_entries_first_and_each_once() {
    let mut queue = Queue::default();
    for (name, is_urgent) in [("a", false), ("b", true), ("c", false), ("d", true), ("c", true), ("b", false)]
    {
        queue.push(key(name), is_urgent);
    }
    assert_eq!(queue.next_due(), Some(Duration::ZERO));
    assert_eq!(pop_all(&mut queue, 0), "bdca");
    assert_eq!(queue.next_due(), None);
}

#[test]
fn delayed_entries_are_popped_when_due() {
    let mut queue = Queue::default();
    queue.delay(key("a"), Duration::from_secs(5));
    queue.delay(key("b"), Duration::from_secs(3));
    queue.push(key("a"), true);
    queue.delay(key("b"), Duration::from_secs(4));
    assert_eq!(queue.next_due(), Some(Duration::from_secs(4)));
    assert_eq!(
        (pop_all(&mut queue, 3), pop_all(&mut queue, 4), pop_all(&mut queue, 5)),
        (String::new(), "b".into(), "a".into())
    );
}

#[test]
fn a_blocked_queue_returns_nothing() {
    let mut queue = Queue::default();
    queue.push(key("a"), false);
    queue.push(key("b"), false);
    let popped = queue.pop(Duration::ZERO).expect("a");
    queue.push_back_until(popped, Duration::from_secs(2));
    queue.push(key("c"), true);
    assert_eq!(queue.next_due(), Some(Duration::from_secs(2)));
    assert_eq!((pop_all(&mut queue, 1), pop_all(&mut queue, 2)), (String::new(), "cab".into()));
}
