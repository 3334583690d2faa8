use std::collections::BTreeMap;

use super::*;

fn good() -> LastGood {
    let stored = |text: &'static str| StoredResource {
        version: "v".to_owned(),
        any: xds::any("type.googleapis.com/x.Y", text.as_bytes()),
    };
    let of_type = |names: &[&'static str]| {
        let mut good = GoodType { version: "7".to_owned(), ..GoodType::default() };
        names.iter().for_each(|name| good.insert((*name).to_owned(), stored(name)));
        Arc::new(good)
    };
    LastGood(BTreeMap::from([
        (type_url::CLUSTER.to_owned(), of_type(&["a", "b"])),
        (type_url::LISTENER.to_owned(), of_type(&[])),
        (type_url::SECRET.to_owned(), of_type(&["private key"])),
    ]))
}

#[test]
fn a_file_has_everything_but_secrets() {
    let file = good().encode("node-1").concat();
    assert!(!String::from_utf8_lossy(&file).contains("private key"));
    let mut expected = good();
    expected.0.remove(type_url::SECRET);
    assert_eq!(LastGood::decode(file, "node-1"), Ok(expected));
}

#[test]
fn the_size_follows_every_change() {
    let mut good = GoodType::default();
    let stored = |length| StoredResource { version: "v".to_owned(), any: vec![0; length].into() };
    for (name, length) in [("a", 10), ("bb", 20), ("a", 5)] {
        good.insert(name.to_owned(), stored(length));
    }
    assert_eq!(good.size(), (1 + 1 + 5) + (2 + 1 + 20));
    good.remove("none");
    good.retain(|name| name == "bb");
    assert_eq!(good.size(), 23);
    good.clear();
    assert_eq!(good.size(), 0);
}

#[test]
fn the_file_of_another_node_is_rejected() {
    assert_eq!(
        LastGood::decode(good().encode("node-1").concat(), "node-2"),
        Err(CacheError::Foreign("node-1".to_owned()))
    );
}

/// Envoy would end its stream at each start, because of the response with this resource.
#[test]
fn a_resource_that_is_no_any_is_damage() {
    let mut good = GoodType::default();
    let any = Bytes::from_static(b"\xff");
    good.insert("a".to_owned(), StoredResource { version: "v".to_owned(), any });
    let good = LastGood(BTreeMap::from([(type_url::CLUSTER.to_owned(), Arc::new(good))]));
    let found = LastGood::decode(good.encode("node-1").concat(), "node-1");
    assert!(matches!(found, Err(CacheError::Malformed(_))), "{found:?}");
}

#[test]
fn every_damage_is_found() {
    let file = good().encode("node-1").concat();
    for length in 0..file.len() {
        assert!(LastGood::decode(file[..length].to_vec(), "node-1").is_err(), "{length}");
    }
    for position in 0..file.len() {
        let mut damaged = file.clone();
        damaged[position] ^= 1;
        assert!(LastGood::decode(damaged, "node-1").is_err(), "{position}");
    }
}

#[test]
fn few_resources_do_not_keep_their_message_in_memory() {
    let message = Bytes::from(vec![0; 1000]);
    let mut good = GoodType::default();
    for (number, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let any = message.slice(number * 250..(number + 1) * 250);
        good.insert(name.to_owned(), StoredResource { version: String::new(), any });
    }
    good.share_message(message.len());
    good.retain(|name| "abc".contains(name));
    assert!(!message.is_unique(), "three quarters of it are in use");
    let before = good.resources()["a"].clone();
    good.retain(|name| name == "a");
    assert_eq!(good.resources()["a"], before);
    drop(before);
    assert!(message.is_unique());
}
