use serde_json::json;

use super::*;

fn values(text: &str) -> Vec<Value> {
    read(text)
        .into_iter()
        .map(|document| document.expect(text).value)
        .filter(|value| !value.is_null())
        .collect()
}

#[test]
fn documents_cover_the_whole_input() {
    for text in [
        "",
        "a: 1",
        "a: 1\n",
        "---\na: 1\n---\nb: 2\n...\n# end\n---\n",
        "\u{feff}a: 1\r\n---\r\nb: |\r\n  ---\r\n  x\r\n",
        "a: 1\n...\n---\nb: 1\n",
        "{\"a\": 1}\n\n  {\"b\": 2}",
        "--- # comment\na: 1\n---\nb: 2\n",
    ] {
        let all: String = read(text).iter().map(|document| document.as_ref().expect(text).text).collect();
        assert_eq!(all, text);
    }
}

#[test]
fn documents_are_separated_at_markers_only() {
    assert_eq!(values("a: |\n  ---\n  x\n--- # b\nb: 2\n---\n"), [json!({"a": "---\nx\n"}), json!({"b": 2})]);
    assert_eq!(values("a: 1\n...\n# end\n---\nb: 2\n"), [json!({"a": 1}), json!({"b": 2})]);
    assert_eq!(values("{\"a\": 1}{\"b\": \"\\ud83d\\ude00\"}"), [json!({"a": 1}), json!({"b": "\u{1f600}"})]);
    assert_eq!(values("{a: 1}"), [json!({"a": 1})], "flow mappings are not JSON");
    assert_eq!(values("\u{feff}a: 1\r\nb: x\r\n"), [json!({"a": 1, "b": "x"})]);
    // Of a second file.
    assert_eq!(values("a: 1\n---\n\u{feff}b: 2\n"), [json!({"a": 1}), json!({"b": 2})]);
    assert_eq!(values("--- # x\r\n\u{feff}b: 2\r\n"), [json!({"b": 2})]);
    assert_eq!(
        values("{\"a\": 9090.0, \"b\": 1e3, \"c\": 0.5}")[0].to_string(),
        r#"{"a":9090,"b":1000,"c":0.5}"#
    );
}

#[test]
fn documents_have_a_line_and_a_number() {
    let text = "# first\n---\na: 1\n---\n# nothing\n---\nb: 2\n";
    let places: Vec<_> = read(text)
        .into_iter()
        .map(|document| document.expect(text))
        .map(|document| (document.line, document.number))
        .collect();
    assert_eq!(places, [(1, 0), (2, 1), (4, 0), (6, 2)]);
}

#[test]
fn errors_have_a_line_and_a_document_number() {
    let cases = [
        ("a: 1\n---\nb: [\n---\nc: 3\n", "document 2"),
        ("a: 1\n---\nb: 1\nb: 2\n", "4:1: document 2: duplicate mapping key: b"),
        ("{\"a\": 1}\n{\"b\": 1,\n\"b\": 2}", "3:7: document 2: duplicate key \"b\""),
    ];
    for (text, words) in cases {
        let errors: Vec<String> = read(text)
            .into_iter()
            .filter_map(|document| document.err())
            .map(|error| error.to_string())
            .collect();
        assert!(errors.len() == 1 && errors[0].contains(words), "{errors:?}");
    }
    let large = "a: ".to_owned() + &"x".repeat(DOCUMENT_LIMIT);
    assert_eq!(read(&large)[0].as_ref().expect_err("too large").reason, "more than 8 MiB");
}

/// kubectl stops at such a line, or drops what follows.
#[test]
fn what_kubectl_does_not_read_is_an_error() {
    for (text, position) in [
        ("a: 1\n--- {b: 2}\n---\nc: 3\n", (2, 2)),
        ("--- {b: 2}\n---\nc: 3\n", (1, 1)),
        ("a: 1\n---b\n---\nc: 3\n", (2, 2)),
        ("a: 1\n---#b\n---\nc: 3\n", (2, 2)),
        ("a: 1\n...\n# b\nb: 2\n---\nc: 3\n", (4, 2)),
    ] {
        let documents = read(text);
        let errors: Vec<_> = documents.iter().filter_map(|document| document.as_ref().err()).collect();
        let found: Vec<_> = errors.iter().map(|error| (error.line, error.number)).collect();
        assert_eq!(found, [position], "{text}");
        let last = documents.last().and_then(|document| document.as_ref().ok());
        assert_eq!(last.map(|document| &document.value), Some(&json!({"c": 3})), "{text}");
    }
}

#[test]
fn a_changed_document_keeps_surrounding_comments() {
    let text = "\u{feff}---   # shop\n# licence\na: 1 # lost\n...\n";
    let documents = read(text);
    let document = documents[0].as_ref().expect("a document");
    assert_eq!(document.with_value(&json!({"a": 2}), Format::Yaml), "---   # shop\n# licence\na: 2\n...\n");
    assert_eq!(document.with_value(&json!({"a": 2}), Format::Json), "{\n  \"a\": 2\n}\n");
}

/// A search from the start of the stream for each of them would take minutes.
#[test]
fn a_stream_of_many_small_parts_is_read_in_linear_time() {
    const COUNT: usize = 200_000;
    let documents = read_all("{}\n", COUNT);
    assert_eq!(documents, (COUNT, Some((COUNT, COUNT))));
    assert_eq!(read_all("%\n", COUNT).0, 1);
    assert_eq!(read_all("...\n", COUNT / 4).0, COUNT / 4);
}

/// Returns the number of documents, and the line and number of the last one.
fn read_all(part: &str, count: usize) -> (usize, Option<(usize, usize)>) {
    let text = part.repeat(count);
    let documents = read(&text);
    let last = documents.last().and_then(|last| last.as_ref().ok());
    (documents.len(), last.map(|last| (last.line, last.number)))
}
