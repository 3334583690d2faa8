use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ObjectCache;
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
    let mut cache = ObjectCache::default();
    for (event, changed, known) in rows {
        let has_changed = match event.split_at(1) {
            ("+", text) => cache.upsert(&key, object(text)),
            ("-", text) => cache.remove(&key, &object(text)),
            _ => {
                cache.remove_deleted(&key);
                false
            }
        };
        assert_eq!(has_changed, *changed, "{event}");
        assert_eq!(cache.get(&key).map(|known| (**known).clone()), known.map(object), "{event}");
    }
}

#[test]
fn outdated_versions_are_ignored() {
    check(&[
        ("+u@9", true, Some("u@9")),
        ("+u@10", true, Some("u@10")),
        ("+u@9", false, Some("u@10")),
        ("+u@10", false, Some("u@10")),
        ("+u@x", true, Some("u@x")),
    ]);
}

#[test]
fn watch_events_of_deleted_objects_are_ignored() {
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
fn missing_returns_unlisted_objects_of_the_namespace() {
    let mut cache = ObjectCache::default();
    for (namespace, name) in [("a", "1"), ("a", "2"), ("b", "1")] {
        cache.upsert(&Key::new(namespace, name), object("u@1"));
    }
    let listed = BTreeSet::from([Key::new("a", "1")]);
    assert_eq!(cache.missing(Some("a"), &listed), [Key::new("a", "2")]);
    assert_eq!(cache.missing(None, &listed), [Key::new("a", "2"), Key::new("b", "1")]);
}
