use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Kind, WatchedConfig};
use discovery::objects::Key;

fn object(kind: Kind, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": kind.names().0,
        "metadata": {"namespace": "shop", "name": name}, "spec": spec,
    })
}

fn group(port: u32) -> Value {
    json!({"probe": {"tcpSocket": {"port": port}}})
}

fn service(resolution: &str) -> Value {
    json!({
        "hosts": ["a.test"], "resolution": resolution, "ports": [{"number": 80, "name": "http"}],
        "workloadSelector": {"labels": {"a": "b"}},
    })
}

type Row<'a> = (Kind, Value, bool, [usize; 3], &'a [&'a str]);

/// Each row has: kind; spec (`null`: deleted); whether `update` reports a change; the resulting
/// numbers of groups, entries and services; and the resulting errors and warnings.
fn check(rows: &[Row]) {
    let mut watched = WatchedConfig::default();
    for (kind, spec, changed, counts, errors) in rows {
        let object = (!spec.is_null()).then(|| object(*kind, "a", spec));
        assert_eq!(watched.update(*kind, &Key::new("shop", "a"), object.as_ref()), *changed, "{spec}");
        let config = watched.config();
        assert_eq!([config.groups.len(), config.entries.len(), config.services.len()], *counts, "{spec}");
        let found = [watched.errors(), watched.warnings()].concat();
        assert_eq!(found, *errors, "{spec}");
    }
}

#[test]
fn the_last_valid_object_stays_in_effect() {
    let bad = "WorkloadGroup shop/a: spec.probe.tcpSocket.port: must be between 1 and 65535, got 0";
    check(&[
        (Kind::Group, group(0), true, [0; 3], &[bad]),
        (Kind::Group, group(1), true, [1, 0, 0], &[]),
        (Kind::Group, group(1), false, [1, 0, 0], &[]),
        (Kind::Group, group(0), true, [1, 0, 0], &[bad]),
        (Kind::Group, group(0), false, [1, 0, 0], &[bad]),
        (Kind::Group, group(1), true, [1, 0, 0], &[]),
        (Kind::Group, Value::Null, true, [0; 3], &[]),
        (Kind::Group, Value::Null, false, [0; 3], &[]),
    ]);
}

#[test]
fn services_with_another_resolution_are_only_counted() {
    let ignored = "ServiceEntry: 1 ignored because their resolution is not STATIC";
    check(&[
        (Kind::Service, service("STATIC"), true, [0, 0, 1], &[]),
        (Kind::Service, service("DNS"), true, [0; 3], &[ignored]),
        (Kind::Service, Value::Null, true, [0; 3], &[]),
        (Kind::Service, service("STATIC"), true, [0, 0, 1], &[]),
    ]);
}

#[test]
fn conflicting_services_are_one_warning() {
    let mut watched = WatchedConfig::default();
    let first =
        "ServiceEntry shop/b: spec.hosts[0]: \"a.test\" port 80 is already defined by ServiceEntry shop/a";
    for (name, expected) in [("a", None), ("b", Some("")), ("c", Some("; 1 more like this"))] {
        let object = object(Kind::Service, name, &service("STATIC"));
        watched.update(Kind::Service, &Key::new("shop", name), Some(&object));
        let expected: Vec<String> = expected.map(|more| format!("{first}{more}")).into_iter().collect();
        assert_eq!((watched.warnings(), watched.errors()), (expected, Vec::new()), "{name}");
    }
}

#[test]
fn an_object_that_was_never_valid_makes_the_config_incomplete() {
    let mut watched = WatchedConfig::default();
    for (kind, spec, expected) in [
        (Kind::Service, json!({"resolution": "STATIC"}), false),
        (Kind::Group, group(0), true),
        (Kind::Group, group(1), false),
        (Kind::Group, group(0), false),
    ] {
        watched.update(kind, &Key::new("shop", "a"), Some(&object(kind, "a", &spec)));
        assert_eq!(watched.config().incomplete, expected, "{spec}");
    }
}

#[test]
fn auto_registered_entries_and_sessions_are_not_configuration() {
    let mut watched = WatchedConfig::default();
    let key = Key::new("shop", "a");
    let mut entry = object(Kind::Entry, "a", &json!({"address": "10.0.0.1"}));
    for (annotation, changed, count) in
        [("owner", true, 1), ("app-health.io/session", false, 1), ("istio.io/autoRegistrationGroup", true, 0)]
    {
        entry["metadata"]["annotations"][annotation] = "1".into();
        assert_eq!(watched.update(Kind::Entry, &key, Some(&entry)), changed, "{annotation}");
        assert_eq!(watched.config().entries.len(), count, "{annotation}");
    }
}

#[test]
fn missing_includes_invalid_objects_of_the_kind_and_namespace() {
    let mut watched = WatchedConfig::default();
    for (name, port) in [("good", 1), ("bad", 0), ("listed", 1)] {
        let object = object(Kind::Group, name, &group(port));
        watched.update(Kind::Group, &Key::new("shop", name), Some(&object));
    }
    let listed = BTreeSet::from([Key::new("shop", "listed")]);
    let missing = watched.missing(Kind::Group, Some("shop"), &listed);
    assert_eq!(missing, [Key::new("shop", "bad"), Key::new("shop", "good")]);
    assert!(watched.missing(Kind::Group, Some("other"), &listed).is_empty());
    assert!(watched.missing(Kind::Service, None, &listed).is_empty());
}
