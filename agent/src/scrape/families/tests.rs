use super::*;

#[test]
fn help_and_type_once_per_family() {
    let (mut families, mut room) = (Families::default(), Room::of(10));
    assert_eq!(families.announce("a", "gauge", &mut room), Ok(true));
    assert_eq!(families.announce("a", "counter", &mut room), Ok(false));
    assert_eq!((families.help("a", &mut room), families.help("a", &mut room)), (Ok(true), Ok(false)));
    assert_eq!(families.sample("b", &mut room), Ok(Kind::Other));
    assert_eq!(families.announce("b", "gauge", &mut room), Ok(false), "after its sample");
    assert_eq!(room, Room::of(8));
}

#[test]
fn samples_of_histograms_and_summaries() {
    let (mut families, mut room) = (Families::default(), Room::of(10));
    assert_eq!(families.announce("h", "histogram", &mut room), Ok(true));
    assert_eq!(families.announce("s", "summary", &mut room), Ok(true));
    for (name, kind) in [
        ("h", Kind::Histogram),
        ("h_bucket", Kind::Histogram),
        ("h_sum", Kind::Histogram),
        ("s_count", Kind::Summary),
        ("s_bucket", Kind::Other),
        ("h_total", Kind::Other),
    ] {
        assert_eq!(families.sample(name, &mut room), Ok(kind), "{name}");
    }
    assert_eq!(families.announce("h_count", "gauge", &mut room), Ok(false), "parsers assign it to h");
    assert_eq!(room, Room::of(6), "only s_bucket and h_total are separate families");
}

#[test]
fn the_number_of_families_is_limited() {
    let (mut families, mut room) = (Families::default(), Room::of(2));
    assert_eq!(families.sample("a", &mut room), Ok(Kind::Other));
    assert_eq!(families.sample("b", &mut room), Ok(Kind::Other));
    assert_eq!(families.sample("c", &mut room), Err(NoRoom));
    assert_eq!(families.sample("a", &mut room), Ok(Kind::Other), "known names are free");
    assert_eq!(families.help("c", &mut Room::of(1)), Ok(true), "another source has a separate limit");
}

#[test]
fn an_entry_has_eight_bytes() {
    assert_eq!(size_of::<(Fingerprint, Facts)>(), 8);
}
