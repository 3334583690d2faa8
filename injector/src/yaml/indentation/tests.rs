use serde_json::json;

use crate::yaml;

/// What kubectl's decoder reads.
#[test]
fn lines_of_quoted_scalars_need_no_indentation() {
    for (text, expected) in [
        (
            "a:\n  b: 'x\n  it''s\n\n  y'\n  c: \"p\n  q \\\n  r\ns\"\nd: 1\n",
            json!({"a": {"b": "x it's\ny", "c": "p q r s"}, "d": 1}),
        ),
        (
            "- a: \"x\n  y\n  z\"\n  b: 'u\n  v'\n-  - 'k\n  l'\n",
            json!([{"a": "x y z", "b": "u v"}, ["k l"]]),
        ),
        ("a: \"x\ny: z\n# w\n- v\"\nb: 1\n", json!({"a": "x y: z # w - v", "b": 1})),
        ("a: 'x\r\ny'\r\nb: 1\r\n", json!({"a": "x y", "b": 1})),
    ] {
        assert_eq!(yaml::value(text).expect(text), expected, "{text}");
        let tree = yaml::tree(text).expect(text).expect("a document");
        assert_eq!(tree.into_value().expect("JSON"), expected, "{text}");
    }
}

#[test]
fn other_errors_keep_their_line() {
    for (text, expected) in [
        ("a: 'x\ny'\na: 1\n", "3:1: duplicate mapping key: a"),
        ("a: 'x\ny'\nb: !!int x\n", "3:10: "),
        // Not closed.
        ("a: 'x\ny\nz\n", "2:1: invalid indentation"),
    ] {
        let error = yaml::value(text).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn comments_after_such_a_scalar_are_found() {
    assert_eq!(yaml::comment_lines("a: 'x\ny'\n# {{ z }}\nb: 1\n").len(), 1);
}

/// The document is parsed again for each of them.
#[test]
fn a_document_may_have_many_of_them() {
    let text: String = (0..100).map(|number| format!("k{number}:\n  - a: 'x\n    y\n    z'\n")).collect();
    let value = yaml::value(&text).expect("YAML");
    assert_eq!(value["k99"][0]["a"], "x y z");
}

/// Many documents cannot be parsed more often than one.
#[test]
fn a_stream_has_one_budget() {
    let text = "a: 'x\ny'\n";
    let mut repeats = super::Repeats(2 * text.len());
    let results: Vec<bool> = (0..3).map(|_| yaml::repaired_value(text, &mut repeats).1.is_ok()).collect();
    assert_eq!(results, [true, true, false]);
    assert!(yaml::repaired_value("a: 'x'\n", &mut repeats).1.is_ok(), "it is parsed once");
}
