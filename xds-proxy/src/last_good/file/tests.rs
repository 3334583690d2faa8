use super::*;
use crate::last_good::StoredResource;

fn good() -> LastGood {
    let stored = |text: &'static str| StoredResource {
        version: "v".to_owned(),
        any: xds::any("type.googleapis.com/x.Y", text.as_bytes()),
    };
    let of_type = |names: &[&'static str]| {
        let mut good = GoodType { version: "7".to_owned(), ..GoodType::default() };
        names.iter().for_each(|name| good.insert(name, stored(name)));
        Arc::new(good)
    };
    LastGood(BTreeMap::from([
        (type_url::CLUSTER.to_owned(), of_type(&["a", "b"])),
        (type_url::LISTENER.to_owned(), of_type(&[])),
        (type_url::SECRET.to_owned(), of_type(&["private key"])),
    ]))
}

/// Returns what a file contains of [`good`].
fn expected() -> LastGood {
    let mut expected = good();
    expected.0.remove(type_url::SECRET);
    expected
}

fn assert_expected(file: Vec<u8>) {
    let found = LastGood::decode(file, "node-1").unwrap();
    assert_eq!(found, expected());
    for (type_url, good) in &expected().0 {
        assert_eq!(found.0[type_url].resources(), good.resources(), "{type_url}");
    }
}

#[test]
fn a_file_has_everything_but_secrets() {
    assert_expected(good().encode("node-1"));
    assert_expected(good().packed().encode("node-1"));
    assert_eq!(good().encode(""), expected().encode(""));
}

/// Returns the file that an older version would have written.
fn uncompressed(good: &LastGood, identity: &str) -> Vec<u8> {
    let mut content = BytesMut::new();
    put_bytes(&mut content, 1, identity.as_bytes());
    for (type_url, good) in &good.0 {
        let mut of_type = BytesMut::new();
        put_bytes(&mut of_type, 1, type_url.as_bytes());
        put_bytes(&mut of_type, 2, good.version.as_bytes());
        for (name, StoredResource { version, any }) in good.resources() {
            let mut resource = BytesMut::new();
            put_bytes(&mut resource, 1, name.as_bytes());
            put_bytes(&mut resource, 2, version.as_bytes());
            put_bytes(&mut resource, 3, &any);
            put_bytes(&mut of_type, 3, &resource);
        }
        put_bytes(&mut content, 2, &of_type);
    }
    [UNCOMPRESSED, &Sha256::digest(&content), &content].concat()
}

#[test]
fn files_of_older_versions_are_read() {
    let file = uncompressed(&expected(), "node-1");
    assert!(LastGood::decode(file.clone(), "node-1").unwrap().0.values().all(|good| good.is_packed));
    assert_expected(file);
    let found = LastGood::decode(uncompressed(&expected(), "node-1"), "node-2");
    assert_eq!(found, Err(CacheError::Foreign("node-1".to_owned())));
}

#[test]
fn the_file_of_another_node_is_rejected() {
    let found = LastGood::decode(good().encode("node-1"), "node-2");
    assert_eq!(found, Err(CacheError::Foreign("node-1".to_owned())));
}

#[test]
fn a_file_without_a_node_belongs_to_none() {
    let of_node = good().encode("");
    assert_eq!(LastGood::decode(of_node, "node-1"), Err(CacheError::Foreign(String::new())));
    let file = [FORMAT, &Sha256::digest(b""), b""].concat();
    assert_eq!(LastGood::decode(file, "node-1"), Err(CacheError::Foreign(String::new())));
}

#[test]
fn every_damage_is_found() {
    for file in [good().encode("node-1"), uncompressed(&expected(), "node-1")] {
        for length in 0..file.len() {
            assert!(LastGood::decode(file[..length].to_vec(), "node-1").is_err(), "{length}");
        }
        for position in 0..file.len() {
            let mut damaged = file.clone();
            damaged[position] ^= 1;
            assert!(LastGood::decode(damaged, "node-1").is_err(), "{position}");
        }
    }
}

/// A small file must not take all memory.
#[test]
fn types_that_are_too_large_together_are_an_error() {
    let with_size = |size: usize| {
        let mut of_type = BytesMut::new();
        put_bytes(&mut of_type, 1, b"type");
        put_integer(&mut of_type, 3, size as u64);
        let mut content = BytesMut::new();
        put_bytes(&mut content, 1, b"node-1");
        put_bytes(&mut content, 2, &of_type);
        let file = [FORMAT, &Sha256::digest(&content), &content].concat();
        LastGood::decode(file, "node-1").unwrap_err()
    };
    assert_eq!(with_size(SIZE_LIMIT), CacheError::Damaged("cannot be decompressed"));
    for size in [SIZE_LIMIT + 1, usize::MAX] {
        assert_eq!(with_size(size), CacheError::Damaged("larger than 80 MiB"));
    }
}
