use super::*;

fn names(names: &[&str]) -> Names {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn since(changes: &Changes, id: &SnapshotId) -> Option<Names> {
    Some(changes.since(id)?.cloned().collect())
}

#[test]
fn names_that_changed_since_a_snapshot() {
    let first = Changes::default();
    let second = Changes::after(&first, names(&["a"]));
    let third = Changes::after(&second, names(&["b"]));
    assert_eq!(since(&third, first.id()), Some(names(&["a", "b"])));
    assert_eq!(since(&third, second.id()), Some(names(&["b"])));
    assert_eq!(since(&third, third.id()), Some(names(&[])));
    assert_eq!(since(&second, third.id()), None, "a later snapshot");
    assert_eq!(since(&third, Changes::default().id()), None, "another one");
}

#[test]
fn the_record_is_limited() {
    let first = Changes::default();
    let mut last = Changes::after(&first, names(&["a"]));
    for _ in 1..SNAPSHOTS {
        last = Changes::after(&last, names(&["a"]));
    }
    assert!(last.since(first.id()).is_some());
    assert!(Changes::after(&last, names(&["a"])).since(first.id()).is_none());
    let many = (0..=NAMES).map(|name| name.to_string().into()).collect();
    assert!(Changes::after(&last, many).since(last.id()).is_none());
}
