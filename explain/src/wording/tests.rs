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
fn tables() -> Vec<Vec<(&'static str, &'static str)>> {
    let wordings = [
        super::container::TABLE,
        super::deletion::TABLE,
        super::failed_pod::TABLE,
        super::image::TABLE,
        super::output::TABLE,
        super::sandbox::TABLE,
        super::scheduler::REASONS,
        super::volume::TABLE,
    ];
    let entry = |wording: &super::Wording| (wording.pattern, wording.source);
    let mut tables: Vec<Vec<_>> =
        wordings.into_iter().map(|table| table.iter().map(entry).collect()).collect();
    tables.push(super::admission::TABLE.iter().map(|(_, wording)| entry(wording)).collect());
    tables.push(super::probe::TABLE.iter().map(|(pattern, source, _)| (*pattern, *source)).collect());
    tables
}

#[test]
fn every_entry_is_a_phrase_with_its_source() {
    for (pattern, source) in tables().concat() {
        assert!(!source.is_empty(), "{pattern}");
        let literal = pattern.replace('*', "");
        assert!(literal.trim().len() >= 5, "{pattern:?} is too short for a phrase");
    }
}

/// An entry behind a more general one would never be found.
#[test]
fn no_entry_hides_behind_another() {
    let mut hidden = Vec::new();
    for table in tables() {
        for (index, (pattern, _)) in table.iter().enumerate() {
            let example = pattern.replace('*', "x y");
            let earlier = table[..index].iter().find(|(earlier, _)| matches(earlier, &example));
            hidden.extend(earlier.map(|(earlier, _)| format!("{earlier} hides {pattern}")));
        }
    }
    assert_eq!(hidden, Vec::<String>::new());
}
