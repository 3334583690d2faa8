use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Objects;
use discovery::objects::Key;

/// Parses `uid@version`.
fn object(text: &str) -> Value {
    let (uid, version) = text.split_once('@').expect("uid@version");
    json!({"metadata": {"uid": uid, "resourceVersion": version}})
}

/// Each row has: an event (`+` object exists, `-` object is gone, `!` we deleted it), whether it
/// changed anything, and the object that is known then.
fn check(rows: &[(&str, bool, Option<&str>)]) {
    let key = Key::new("shop", "a");
    let mut objects = Objects::default();
    for (event, is_news, known) in rows {
        let news = match event.split_at(1) {
            ("+", text) => objects.put(&key, object(text)),
            ("-", text) => objects.gone(&key, &object(text)),
            _ => {
                objects.bury(&key);
                false
            }
        };
        assert_eq!(news, *is_news, "{event}");
        assert_eq!(objects.get(&key).map(|known| (**known).clone()), known.map(object), "{event}");
    }
}

#[test]
fn the_newest_stays() {
    check(&[
        ("+u@9", true, Some("u@9")),
        ("+u@10", true, Some("u@10")),
        ("+u@9", false, Some("u@10")),
        ("+u@10", false, Some("u@10")),
        ("+u@x", true, Some("u@x")),
    ]);
}

#[test]
fn a_delete_of_ours_is_not_undone_by_what_the_watch_still_brings() {
    check(&[
        ("+u@9", true, Some("u@9")),
        ("!", false, None),
        ("+u@10", false, None),
        ("+v@12", true, Some("v@12")),
        ("-u@11", false, Some("v@12")),
        ("-v@13", true, None),
        ("-v@13", false, None),
    ]);
}

#[test]
fn missing_is_what_was_not_listed_in_the_scope() {
    let mut objects = Objects::default();
    for (namespace, name) in [("a", "1"), ("a", "2"), ("b", "1")] {
        objects.put(&Key::new(namespace, name), object("u@1"));
    }
    let listed = BTreeSet::from([Key::new("a", "1")]);
    assert_eq!(objects.missing(Some("a"), &listed), [Key::new("a", "2")]);
    assert_eq!(objects.missing(None, &listed), [Key::new("a", "2"), Key::new("b", "1")]);
}
