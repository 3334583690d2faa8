use bytes::BytesMut;
use xds::put_bytes;

use super::*;

/// Returns a response with resources of these names, each of 100 bytes and more.
fn message(names: &[&str]) -> Bytes {
    let anys = names.iter().map(|name| {
        let (mut value, mut any) = (BytesMut::new(), BytesMut::new());
        put_bytes(&mut value, 1, name.as_bytes());
        put_bytes(&mut value, 2, &[7; 100]);
        put_bytes(&mut any, 2, &value);
        any
    });
    let anys: Vec<_> = anys.collect();
    let resources = anys.iter().map(|any| ResourceRef { name: "", version: "", any });
    ResponseHead { type_url: "type", version: "1", nonce: "" }.encode(Variant::Sotw, resources, [])
}

fn apply(message: &Bytes, good: &mut GoodType) {
    let response = Response::parse(message, Variant::Sotw).expect("a valid response");
    Content::from(response).apply(good, false);
}

#[test]
fn only_resources_that_replace_all_others_stay_parts_of_their_message() {
    let mut good = GoodType::default();
    let first = message(&["a", "b", "c"]);
    apply(&first, &mut good);
    assert!(!first.is_unique());

    let changed = message(&["b"]);
    apply(&changed, &mut good);
    assert!(changed.is_unique(), "it is copied");
    assert!(!first.is_unique(), "two of three are in use");

    let all = message(&["a", "b", "c", "d"]);
    apply(&all, &mut good);
    assert!(!all.is_unique());
    assert!(first.is_unique(), "all are replaced");
    assert_eq!(good.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}

/// Returns the size of a response that removes these names, after the resources of `message`.
fn size(resources: &[&str], removed: &[&str]) -> usize {
    let mut message = BytesMut::new();
    for name in resources {
        let any = BytesMut::from(&b"\x12\x00"[..]);
        let resource = ResourceRef { name, version: "1", any: &any };
        let head = ResponseHead { type_url: "type", version: "1", nonce: "" };
        message.extend_from_slice(&head.encode(Variant::Delta, [resource], []));
    }
    removed.iter().for_each(|name| put_bytes(&mut message, 6, name.as_bytes()));
    Content::from(Response::parse(&message.freeze(), Variant::Delta).expect("a valid response")).size()
}

#[test]
fn the_size_counts_each_name() {
    assert_eq!(size(&[], &[]), 0);
    for (short, long) in [
        (size(&["a"], &[]), size(&["abc"], &[])),
        (size(&[], &["a"]), size(&[], &["abc"])),
        (size(&["a"], &["b"]), size(&["a"], &["bcd"])),
    ] {
        assert_eq!((long - short, short > 24), (2, true), "{short} {long}");
    }
    assert_eq!(size(&["a", "b"], &["c", "d"]), 2 * size(&["a"], &["c"]));
    assert_eq!(size(&["a"], &["c"]), size(&["a"], &[]) + size(&[], &["c"]));
}
