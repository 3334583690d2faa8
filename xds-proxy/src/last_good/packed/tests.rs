use super::*;

/// Returns a resource with this content.
fn stored(content: &[u8]) -> StoredResource {
    StoredResource { version: "v".to_owned(), any: xds::any("type.googleapis.com/x.Y", content) }
}

fn resources<'a>(contents: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, StoredResource)> {
    let contents = contents.into_iter().enumerate();
    contents.map(|(number, content)| (format!("outbound|80||service-{number}"), stored(content))).collect()
}

#[test]
fn unpacked_is_what_was_packed() {
    let mut random = fastrand::Rng::with_seed(7);
    let noise: Vec<u8> = (0..200_000).map(|_| random.u8(..)).collect();
    for contents in [vec![], vec![&b""[..]], vec![b"x", b""], vec![&noise[..]; 3]] {
        let resources = resources(contents);
        assert!(Packed::pack(&resources).unpack().unwrap().resources == resources);
    }
}

#[test]
fn what_repeats_itself_is_small() {
    let contents: Vec<String> =
        (0..1000).map(|number| format!("outbound|80||service-{number}.shop.svc.cluster.local")).collect();
    let packed = Packed::pack(&resources(contents.iter().map(String::as_bytes)));
    assert!(packed.deflate.len() < packed.size / 4, "{} of {}", packed.deflate.len(), packed.size);
}

#[test]
fn what_is_cut_or_has_another_size_is_damaged() {
    let contents: [&[u8]; 2] = [b"outbound|80||payments.shop.internal", b"outbound|80||orders.shop.internal"];
    let good = Packed::pack(&resources(contents));
    for length in 0..good.deflate.len() {
        let cut = Packed { deflate: good.deflate.slice(..length), ..good.clone() };
        assert!(cut.unpack().is_err(), "{length}");
    }
    for size in [0, 1, good.size - 1, good.size + 1] {
        assert!(Packed { size, ..good.clone() }.unpack().is_err(), "{size}");
    }
}

#[test]
fn resources_out_of_order_are_damage() {
    let mut resources = resources([&b"x"[..], b"y"]);
    resources.reverse();
    assert_eq!(Packed::pack(&resources).unpack().unwrap_err(), CacheError::Damaged("names are not in order"));
    resources[0] = resources[1].clone();
    assert!(Packed::pack(&resources).unpack().is_err(), "a name twice");
}

/// A few bytes can be many small resources.
#[test]
fn too_many_resources_are_damage() {
    let mut writer = Writer::new();
    (0..=ITEM_LIMIT).for_each(|_| writer.write(b"\x1a\x00"));
    assert_eq!(
        writer.finish().unpack().unwrap_err(),
        CacheError::Damaged("more than 100,000 resources of one type")
    );
}

/// Envoy would end its stream at each start, because of the response with this resource.
#[test]
fn a_resource_that_is_no_any_is_damage() {
    let any = Bytes::from_static(b"\xff");
    let resources = vec![("a".to_owned(), StoredResource { any, ..stored(b"") })];
    let found = Packed::pack(&resources).unpack();
    assert!(matches!(found, Err(CacheError::Malformed(_))), "{found:?}");
}
