use super::*;

fn stored(version: &str, content: &str) -> StoredResource {
    let any = xds::any("type.googleapis.com/x.Y", content.as_bytes());
    StoredResource { version: version.to_owned(), any }
}

/// Returns a type with these resources, whose content is `<name> 1`.
fn of_names(names: &[&str]) -> GoodType {
    let mut good = GoodType::default();
    names.iter().for_each(|name| good.insert(name, stored("1", &format!("{name} 1"))));
    good
}

#[test]
fn the_size_follows_every_change() {
    let mut good = GoodType::default();
    let stored = |length| StoredResource { version: "v".to_owned(), any: vec![0; length].into() };
    for (name, length) in [("a", 10), ("bb", 20), ("a", 5)] {
        good.insert(name, stored(length));
    }
    assert_eq!(good.size(), (1 + 1 + 5) + (2 + 1 + 20));
    good.remove("none");
    good.retain(|name| name == "bb");
    assert_eq!(good.size(), 23);
    good.remove("bb");
    assert_eq!(good.size(), 0);
}

#[test]
fn the_same_resource_has_the_same_name_version_and_content() {
    let good = of_names(&["a", "b"]);
    let any = stored("1", "a 1").any;
    assert!(good.is_same("a", "1", &any));
    assert!(!good.is_same("b", "1", &any) && !good.is_same("c", "1", &any));
    assert!(!good.is_same("a", "2", &any) && !good.is_same("a", "1", &stored("1", "a 2").any));
}

#[test]
fn compressed_resources_follow_every_change() {
    let good = Arc::new(of_names(&["a", "b", "c"]));
    let packed = good.packed();
    assert_eq!((&packed, packed.resources()), (&good, good.resources()));
    assert!(packed.fresh.is_empty());
    assert!(Arc::ptr_eq(&packed.packed(), &packed), "nothing has changed");
    let changes: [fn(&mut GoodType); 4] = [
        |good| good.insert("b", stored("2", "b 2")),
        |good| good.insert("d", stored("1", "d 1")),
        |good| good.remove("a"),
        |good| good.retain(|name| name == "c"),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let [mut expected, mut changed] = [&good, &packed].map(|good| GoodType::clone(good));
        change(&mut expected);
        change(&mut changed);
        let again = Arc::new(changed).packed();
        assert_eq!((&*again, again.resources()), (&expected, expected.resources()), "change {number}");
        assert!(again.fresh.is_empty() && !Arc::ptr_eq(&again, &packed), "change {number}");
    }
}

#[test]
fn an_unchanged_resource_stays_compressed() {
    let good = Arc::new(of_names(&["a", "b"])).packed();
    let mut again = GoodType::clone(&good);
    again.insert("a", stored("1", "a 1"));
    again.remove("none");
    assert!(again.fresh.is_empty() && again.is_packed);
}

/// Whatever has changed since, only the form of the others does.
#[test]
fn the_compressed_form_of_an_earlier_state_is_taken() {
    let start = Arc::new(of_names(&["a", "b", "c"]));
    let earlier = start.packed();
    let mut good = GoodType::clone(&start);
    good.adopt(&earlier);
    assert!(good.fresh.is_empty() && good.is_packed);
    let mut good = GoodType::clone(&start);
    good.insert("b", stored("1", "b 2"));
    good.insert("d", stored("1", "d 1"));
    good.remove("c");
    let resources = good.resources();
    good.adopt(&earlier);
    assert_eq!(good.resources(), resources);
    assert_eq!(good.fresh.keys().map(|name| &**name).collect::<Vec<_>>(), ["b", "d"]);
    assert!(!good.is_packed);
}
