use super::matches;

#[test]
fn patterns_match_whole_messages() {
    for (pattern, text, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("*", "", true),
        ("a*", "ab", true),
        ("*b", "ab", true),
        ("*b", "abc", false),
        ("a*c", "ac", true),
        ("a*a", "a", false),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "a-c", false),
        ("*x*x*", "x", false),
        ("*: not found", "image: not found", true),
        ("*: not found", "not found: image", false),
        ("ä*ü", "ä-ü", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}

/// All tables: the pattern and the source of each entry.
fn entries() -> Vec<(&'static str, &'static str)> {
    let wordings = [
        super::container::TABLE,
        super::failed_pod::TABLE,
        super::image::TABLE,
        super::output::TABLE,
        super::sandbox::TABLE,
        super::scheduler::REASONS,
        super::volume::TABLE,
    ];
    let of_admission = super::admission::TABLE.iter().map(|(_, wording)| wording);
    let all = wordings.into_iter().flatten().chain(of_admission);
    let of_probes = super::probe::TABLE.iter().map(|(pattern, source, _)| (*pattern, *source));
    all.map(|wording| (wording.pattern, wording.source)).chain(of_probes).collect()
}

#[test]
fn every_entry_is_a_phrase_with_its_source() {
    for (pattern, source) in entries() {
        assert!(!source.is_empty(), "{pattern}");
        let literal = pattern.replace('*', "");
        assert!(literal.trim().len() >= 5, "{pattern:?} is too short for a phrase");
    }
}

/// An entry behind a more general one would never be found.
#[test]
fn no_entry_hides_behind_another() {
    let tables = [
        super::container::TABLE,
        super::failed_pod::TABLE,
        super::image::TABLE,
        super::output::TABLE,
        super::sandbox::TABLE,
        super::scheduler::REASONS,
        super::volume::TABLE,
    ];
    for table in tables {
        for (index, wording) in table.iter().enumerate() {
            let example = wording.pattern.replace('*', "x y");
            let earlier = table[..index].iter().find(|earlier| matches(earlier.pattern, &example));
            assert!(
                earlier.is_none(),
                "{} hides {}",
                earlier.map_or("", |earlier| earlier.pattern),
                wording.pattern
            );
        }
    }
}
