mod other_codec;

use bytes::{Bytes, BytesMut};

use crate::type_url::CLUSTER;

use super::*;

fn message(fields: &[(u64, &[u8])]) -> Bytes {
    let mut to = BytesMut::new();
    for (number, content) in fields {
        put_bytes(&mut to, *number, content);
    }
    to.freeze()
}

/// A resource of a type whose name is its first field.
fn any(name: &str) -> Bytes {
    message(&[(1, b"type"), (2, &message(&[(1, name.as_bytes()), (9, b"content")]))])
}

#[test]
fn requests_keep_fields_that_the_proxy_does_not_know() {
    let sotw = message(&[
        (1, b"v1"),
        (2, b"node"),
        (3, b"a"),
        (3, b"b"),
        (4, CLUSTER.as_bytes()),
        (5, b"7"),
        (99, b"new"),
    ]);
    let request = Request::parse(&sotw, Variant::Sotw).unwrap();
    assert_eq!((&*request.version, &*request.nonce, &*request.type_url), ("v1", "7", CLUSTER));
    assert_eq!(request.subscribe, ["a", "b"]);
    assert_eq!(request.subscription, message(&[(3, b"a"), (3, b"b"), (99, b"new")]));
    assert_eq!(Request::parse(&request.encode(Variant::Sotw), Variant::Sotw).unwrap(), request);
    let limited = Request::parse_limited(&sotw, Variant::Sotw, 2).unwrap();
    assert_eq!(limited, Request { subscription: Bytes::new(), ..request });

    let entry = message(&[(1, b"a"), (2, b"v1")]);
    let delta = message(&[
        (1, b"node"),
        (2, CLUSTER.as_bytes()),
        (3, b"a"),
        (4, b"b"),
        (5, &entry),
        (6, b"7"),
        (7, &message(&[(2, b"bad cluster")])),
        (99, b"new"),
    ]);
    let request = Request::parse(&delta, Variant::Delta).unwrap();
    assert_eq!((&*request.subscribe, &*request.unsubscribe), (&["a".to_owned()][..], &["b".to_owned()][..]));
    assert_eq!(request.initial_versions, [("a".to_owned(), "v1".to_owned())]);
    assert_eq!(request.error_text(), Ok(Some("bad cluster".to_owned())));
    assert_eq!(Request::parse(&request.encode(Variant::Delta), Variant::Delta).unwrap(), request);
}

#[test]
fn the_last_message_of_an_error_counts() {
    for (error, expected) in [
        (&b""[..], Ok("")),
        (b"\x08\x03\x12\x01a\x12\x01b", Ok("b")),
        (b"\x12\x01a\x12\x09b", Err("an incomplete field")),
        (b"\x12\x01\xff", Err("a string that is not UTF-8")),
        (b"\x10\x01", Err("a number instead of a string or message")),
    ] {
        let request = Request { error: Some(Bytes::from_static(error)), ..Request::default() };
        let expected = expected.map(|text| Some(text.to_owned())).map_err(Malformed);
        assert_eq!(request.error_text(), expected, "{error:?}");
    }
}

#[test]
fn the_last_nonce_of_a_response_counts() {
    let response = message(&[(1, b"v1"), (2, &any("a")), (4, CLUSTER.as_bytes()), (5, b"server")]);
    let renamed: Bytes = [response, Response::nonce_suffix("17")].concat().into();
    let parsed = Response::parse(&renamed, Variant::Sotw).unwrap();
    assert_eq!(parsed.nonce, "17");
    assert_eq!(parsed.resources[0].name, "a");
    assert_eq!(parsed.resources[0].any, any("a"));
}

#[test]
fn names_of_resources() {
    let wrapped = message(&[(3, b"wrapped"), (1, b"v"), (2, &any("inner"))]);
    let wrapper = message(&[(1, b"type.googleapis.com/envoy.service.discovery.v3.Resource"), (2, &wrapped)]);
    for (any, name, is_storable) in [
        (any("a"), "a", true),
        (wrapper, "wrapped", true),
        (message(&[(1, b"type"), (2, b"\x08\x01")]), "", false),
    ] {
        let response = message(&[(2, &any), (4, CLUSTER.as_bytes())]);
        let parsed = Response::parse(&response, Variant::Sotw).unwrap();
        assert_eq!((&*parsed.resources[0].name, parsed.resources[0].is_storable), (name, is_storable));
    }
    let with_ttl =
        message(&[(2, &message(&[(3, b"a"), (2, &any("a")), (6, b"ttl")])), (4, CLUSTER.as_bytes())]);
    assert!(!Response::parse(&with_ttl, Variant::Delta).unwrap().resources[0].is_storable);
}

#[test]
fn written_responses_can_be_read() {
    let (a, b) = (any("a"), any("b"));
    let head = ResponseHead { type_url: CLUSTER, version: "v1", nonce: "7" };
    let resources = [("a", &a), ("b", &b)].map(|(name, any)| ResourceRef { name, version: "7", any });
    let sotw = Response::parse(&head.encode(Variant::Sotw, resources, ["c"]), Variant::Sotw).unwrap();
    assert_eq!(sotw.resources.iter().map(|resource| &*resource.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(sotw.removed, Vec::<String>::new());
    let resources = [ResourceRef { name: "a", version: "7", any: &a }];
    let delta = Response::parse(&head.encode(Variant::Delta, resources, ["c"]), Variant::Delta).unwrap();
    assert_eq!((delta.removed, &*delta.nonce), (vec!["c".to_owned()], "7"));
    assert_eq!((&*delta.resources[0].name, &*delta.resources[0].version), ("a", "7"));
    assert_eq!(delta.resources[0].any, a);
}

#[test]
fn every_prefix_and_random_bytes_are_read_or_rejected() {
    let whole = message(&[(1, b"v1"), (2, &any("a")), (4, CLUSTER.as_bytes()), (5, b"server")]);
    let mut random = fastrand::Rng::with_seed(7);
    for variant in [Variant::Sotw, Variant::Delta] {
        for length in 0..whole.len() {
            let _ = Response::parse(&whole.slice(..length), variant);
            let _ = Request::parse(&whole.slice(..length), variant);
        }
        for _ in 0..10_000 {
            let mut bytes = whole.to_vec();
            let position = random.usize(..bytes.len());
            bytes[position] = random.u8(..);
            let _ = Response::parse(&bytes.clone().into(), variant);
            let _ = Request::parse(&bytes.into(), variant);
        }
    }
    assert!(
        Response::parse(&Bytes::from_static(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), Variant::Sotw)
            .is_err()
    );
}
