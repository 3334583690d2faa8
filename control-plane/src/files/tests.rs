use super::*;

#[test]
fn the_parts_that_are_not_utf8_have_a_position() {
    let positions = |bytes: &[u8]| {
        let found = invalid_parts(bytes).into_iter();
        found.map(|Position { line, column }| (line, column)).collect::<Vec<_>>()
    };
    assert_eq!(positions(b"a: b\n"), []);
    assert_eq!(positions(b"\xe9"), [(1, 1)]);
    assert_eq!(positions(b"a: b\nc: d\xe9\xe9\n\n\xffx"), [(2, 5), (2, 6), (4, 1)]);
    assert_eq!(positions("é\n".as_bytes()), []);
    // A sequence that is not complete is one part.
    assert_eq!(positions(b"\xe2\x82 \xff"), [(1, 1), (1, 4)]);
}

#[test]
fn a_part_belongs_to_the_document_in_whose_lines_it_is() {
    let source = Source::new("a.yaml".into(), None, b"a: b\n---\nc: \xe9\n---\nd: e\n".to_vec(), false);
    assert_eq!(source.text().expect("not UTF-16"), "a: b\n---\nc: \u{fffd}\n---\nd: e\n");
    assert_eq!(source.invalid_in(1, "a: b\n"), None);
    assert_eq!(source.invalid_in(2, "---\nc: x\n").as_deref(), Some("a.yaml:3:4: is not UTF-8"));
    assert_eq!(source.invalid_in(4, "---\nd: e\n"), None);
}

/// A search through all of them for each document would take minutes.
#[test]
fn many_documents_that_are_not_utf8_are_found_in_linear_time() {
    const COUNT: usize = 200_000;
    let source = Source::new("a.yaml".to_owned(), None, b"a: \xff\n".repeat(COUNT), false);
    let found = (1..=COUNT).filter(|line| source.invalid_in(*line, "a: ?\n").is_some()).count();
    assert_eq!(found, COUNT);
    assert_eq!(source.invalid_in(COUNT + 1, "a: b\n"), None);
}
