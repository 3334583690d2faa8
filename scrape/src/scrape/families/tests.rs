use super::*;

const ONE: Owner = Owner::Source(1);

#[test]
fn help_and_type_once_per_family() {
    let (mut families, mut limit) = (Families::default(), FamilyLimit(10));
    assert_eq!(families.record_type("a", "gauge", &mut limit), Ok(true));
    assert_eq!(families.record_type("a", "counter", &mut limit), Ok(false));
    assert_eq!(
        (families.record_help("a", &mut limit), families.record_help("a", &mut limit)),
        (Ok(true), Ok(false))
    );
    assert_eq!(families.record_sample("b", ONE, &mut limit), Ok(Kind::Other));
    assert_eq!(families.record_type("b", "gauge", &mut limit), Ok(false), "after its sample");
    assert_eq!(limit, FamilyLimit(8));
}

#[test]
fn samples_of_histograms_and_summaries() {
    let (mut families, mut limit) = (Families::default(), FamilyLimit(10));
    assert_eq!(families.record_type("h", "histogram", &mut limit), Ok(true));
    assert_eq!(families.record_type("s", "summary", &mut limit), Ok(true));
    for (name, kind) in [
        ("h", Kind::Histogram),
        ("h_bucket", Kind::Histogram),
        ("h_sum", Kind::Histogram),
        ("s_count", Kind::Summary),
        ("s_bucket", Kind::Other),
        ("h_total", Kind::Other),
    ] {
        assert_eq!(families.record_sample(name, ONE, &mut limit), Ok(kind), "{name}");
    }
    assert_eq!(families.record_type("h_count", "gauge", &mut limit), Ok(false), "parsers assign it to h");
    assert_eq!(limit, FamilyLimit(6), "only s_bucket and h_total are separate families");
}

#[test]
fn the_number_of_families_is_limited() {
    let (mut families, mut limit) = (Families::default(), FamilyLimit(2));
    assert_eq!(families.record_sample("a", ONE, &mut limit), Ok(Kind::Other));
    assert_eq!(families.record_sample("b", ONE, &mut limit), Ok(Kind::Other));
    assert_eq!(families.record_sample("c", ONE, &mut limit), Err(DropReason::TooManyFamilies));
    assert_eq!(families.record_sample("a", ONE, &mut limit), Ok(Kind::Other), "known names are free");
    assert_eq!(
        families.record_help("c", &mut FamilyLimit(1)),
        Ok(true),
        "another source has a separate limit"
    );
}

#[test]
fn a_family_occupies_eleven_bytes() {
    assert_eq!(size_of::<(Fingerprint, Family)>(), 11);
}

#[test]
fn families_of_several_sources() {
    let (mut families, mut limit) = (Families::default(), FamilyLimit(20));
    let mut record = |name, owner| {
        families.record_sample(name, owner, &mut limit).unwrap();
        let (count, first) = families.shared();
        (count, first.map(str::to_owned))
    };
    let two = Owner::Source(2);
    for (name, owner) in [("a", ONE), ("a", ONE), ("b", two), ("c", Owner::Labelled), ("a", Owner::Labelled)]
    {
        assert_eq!(record(name, owner), (0, None), "{name} {owner:?}");
    }
    let first = Some("a".to_owned());
    assert_eq!(record("a", two), (1, first.clone()));
    assert_eq!(record("a", Owner::Source(3)), (1, first.clone()), "each family counts once");
    assert_eq!(record("c", two), (1, first.clone()), "the other one has a label");
    assert_eq!(record("b", ONE), (2, first));
}
