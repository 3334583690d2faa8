use std::collections::BTreeMap;

use super::*;

fn good() -> LastGood {
    let stored = |text: &'static str| StoredResource {
        version: "v".to_owned(),
        any: Bytes::from_static(text.as_bytes()),
    };
    let of_type = |names: &[&'static str]| GoodType {
        version: "7".to_owned(),
        resources: names.iter().map(|name| ((*name).to_owned(), stored(name))).collect(),
    };
    LastGood(BTreeMap::from([
        (wire::CLUSTER.to_owned(), of_type(&["a", "b"])),
        (wire::LISTENER.to_owned(), of_type(&[])),
        (wire::SECRET.to_owned(), of_type(&["private key"])),
    ]))
}

#[test]
fn a_file_has_everything_but_secrets() {
    let file = good().encode("node-1");
    assert!(!String::from_utf8_lossy(&file).contains("private key"));
    let mut expected = good();
    expected.0.remove(wire::SECRET);
    assert_eq!(LastGood::decode(file, "node-1"), Ok(expected));
}

#[test]
fn the_file_of_another_node_is_rejected() {
    assert_eq!(
        LastGood::decode(good().encode("node-1"), "node-2"),
        Err(CacheError::Foreign("node-1".to_owned()))
    );
}

#[test]
fn every_damage_is_found() {
    let file = good().encode("node-1");
    for length in 0..file.len() {
        assert!(LastGood::decode(file[..length].to_vec(), "node-1").is_err(), "{length}");
    }
    for position in 0..file.len() {
        let mut damaged = file.clone();
        damaged[position] ^= 1;
        assert!(LastGood::decode(damaged, "node-1").is_err(), "{position}");
    }
}
