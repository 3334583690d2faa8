use super::*;

#[test]
fn help_and_type_once_per_family() {
    let (mut families, mut limit) = (Families::default(), FamilyLimit(10));
    assert_eq!(families.record_type("a", "gauge", &mut limit), Some(true));
    assert_eq!(families.record_type("a", "counter", &mut limit), Some(false));
    assert_eq!(
        (families.record_help("a", &mut limit), families.record_help("a", &mut limit)),
        (Some(true), Some(false))
    );
    assert_eq!(families.record_sample("b", &mut limit), Some(Kind::Other));
    assert_eq!(families.record_type("b", "gauge", &mut limit), Some(false), "after its sample");
    assert_eq!(limit, FamilyLimit(8));
}

#[test]
fn samples_of_histograms_and_summaries() {
    let (mut families, mut limit) = (Families::default(), FamilyLimit(10));
    assert_eq!(families.record_type("h", "histogram", &mut limit), Some(true));
    assert_eq!(families.record_type("s", "summary", &mut limit), Some(true));
    for (name, kind) in [
        ("h", Kind::Histogram),
        ("h_bucket", Kind::Histogram),
        ("h_sum", Kind::Histogram),
        ("s_count", Kind::Summary),
        ("s_bucket", Kind::Other),
        ("h_total", Kind::Other),
    ] {
        assert_eq!(families.record_sample(name, &mut limit), Some(kind), "{name}");
    }
    assert_eq!(families.record_type("h_count", "gauge", &mut limit), Some(false), "parsers assign it to h");
    assert_eq!(limit, FamilyLimit(6), "only s_bucket and h_total are separate families");
}

#[test]
fn the_number_of_families_is_limited() {
    let (mut families, mut limit) = (Families::default(), FamilyLimit(2));
    assert_eq!(families.record_sample("a", &mut limit), Some(Kind::Other));
    assert_eq!(families.record_sample("b", &mut limit), Some(Kind::Other));
    assert_eq!(families.record_sample("c", &mut limit), None);
    assert_eq!(families.record_sample("a", &mut limit), Some(Kind::Other), "known names are free");
    assert_eq!(
        families.record_help("c", &mut FamilyLimit(1)),
        Some(true),
        "another source has a separate limit"
    );
}

#[test]
fn a_family_occupies_nine_bytes() {
    assert_eq!(size_of::<(Fingerprint, Family)>(), 9);
}
