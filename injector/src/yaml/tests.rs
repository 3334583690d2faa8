use serde_json::json;

use super::*;

/// Strings that look like other YAML types.
const STRINGS: &str = include_str!("../../testdata/strings.json");

#[test]
fn scalars_are_read_as_kubectl_reads_them() {
    let cases = [
        ("a: 0644", json!({"a": 420})),
        ("a: -017", json!({"a": -15})),
        ("a: yes", json!({"a": true})),
        ("a: off", json!({"a": false})),
        ("a: 1_000", json!({"a": 1000})),
        ("a: 0x10", json!({"a": 16})),
        ("a: 08", json!({"a": 8})),
        ("a: ~", json!({"a": null})),
        ("x: &x {a: 1}\nz: {<<: *x, b: 2}", json!({"x": {"a": 1}, "z": {"b": 2, "a": 1}})),
        ("a: 123e4567", json!({"a": "123e4567"})),
        ("{0644: a, 1e3: b, on: c}", json!({"420": "a", "1000": "b", "true": "c"})),
        ("{a: 2, <<: {a: 1}}", json!({"a": 1})),
        ("{<<: {a: 1}, a: 2}", json!({"a": 2})),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", json!({"a": 1, "b": 2})),
        ("'<<': {a: 1}", json!({"<<": {"a": 1}})),
        ("[! 12, !x 12, !!str 12, !!int '12']", json!(["12", "12", "12", 12])),
        ("[&a 1, *a]", json!([1, 1])),
        ("8080: a", json!({"8080": "a"})),
        ("a: 12345678901234567890", json!({"a": 12_345_678_901_234_567_890_u64})),
        ("", json!(null)),
        ("# nothing", json!(null)),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text).expect(text), expected, "{text}");
    }
}

#[test]
fn written_yaml_is_read_back() {
    for string in serde_json::from_str::<Vec<String>>(STRINGS).expect("JSON") {
        let written = json!({"a": {"b": [string]}, (string.clone()): string});
        assert_eq!(value(&text(&written)).expect(&string), written, "{string:?}: {}", text(&written));
    }
}

#[test]
fn text_with_tabs_is_not_written_as_a_block_scalar() {
    assert!(!text(&json!({"a": "\tx\ny"})).contains('|'));
    assert!(text(&json!({"a": "x\ny\n"})).contains('|'));
}

#[test]
fn what_kubectl_refuses_or_reads_in_another_way_has_a_position() {
    for (text, position, words) in [
        ("a: 1\nb: .inf\n", (2, 4), "is not a number in JSON"),
        ("~: 1", (1, 1), "null is not a key"),
        ("a:\n  18446744073709551615: b", (2, 3), "too large for a key"),
        ("[a]: b", (1, 1), "a key must be a scalar"),
        ("1: a\n'1': b", (2, 1), "duplicate mapping key: 1"),
        ("on: a\nyes: b", (2, 1), "duplicate mapping key: true"),
        ("<<: 1", (1, 5), "must be a mapping"),
        ("a: &x [*x]", (1, 8), "an alias of a value that contains it"),
        ("a: !!int x", (1, 10), "\"x\" is not an integer"),
        ("a: x\u{2028}y", (1, 5), "U+2028 is a line break for kubectl"),
        ("# \u{7f}", (1, 3), "U+007F is not allowed"),
        ("%YAML 1.2\n---\na: 1", (1, 1), "directives"),
    ] {
        let error = value(text).expect_err(text);
        assert_eq!((error.line, error.column), position, "{text:?}: {error}");
        assert!(error.reason.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn errors_have_a_line() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let bomb: String = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |bomb, level| {
        let alias = format!("*a{}", level - 1);
        bomb + &format!("a{level}: &a{level} [{}]\n", vec![alias; 10].join(", "))
    });
    for (text, line) in [("a: 1\nb: 2\na: 3\n", 3), ("a: [1\nb: 2\n", 2), ("a: b: c", 1), (&deep, 1)] {
        let error = value(text).expect_err(text);
        assert_eq!(error.line, line, "{error}");
        assert!(!error.reason.is_empty() && !error.reason.contains('\n'), "{error}");
    }
    value(&bomb).expect_err("too many nodes");
    let nested: String = (0..100).map(|level| format!("&a{level} [")).collect();
    let nested = nested + &"1,".repeat(20_000) + &"]".repeat(100);
    assert_eq!(value(&nested).expect_err("too many nodes").reason, "too many values");
}

#[test]
fn the_text_that_aliases_repeat_is_limited() {
    let large = "x".repeat(40_000);
    let aliases = |count: usize| format!("a: &a {large}\nb: [{}]\n", vec!["*a"; count].join(", "));
    value(&aliases(20)).expect("below the limit");
    let key = "k".repeat(900);
    let keys: String = (0..40).map(|number| format!("{key}{number}: 1, ")).collect();
    let keys = format!("a: &a {{{keys}}}\nb: [{}]\n", vec!["*a"; 100].join(", "));
    let nested: String = (0..100).map(|level| format!("&a{level} [")).collect();
    let anchors = format!("{nested}{large}{}", "]".repeat(100));
    for text in [aliases(4_900), keys, anchors] {
        let error = value_within(&text, 10_000).expect_err("too much text");
        assert_eq!(error.reason, "anchors and aliases repeat too much text");
    }
}

#[test]
fn aliases_do_not_add_levels_beyond_the_limit() {
    let level = |number: usize| {
        let inner = if number == 0 { "x".to_owned() } else { format!("*a{}", number - 1) };
        format!("a{number}: &a{number} {}{inner}{}\n", "[".repeat(60), "]".repeat(60))
    };
    value(&format!("{}{}", level(0), level(1))).expect("122 levels");
    let error = value(&(0..90).map(level).collect::<String>()).expect_err("182 levels");
    assert_eq!((error.line, error.reason.as_str()), (3, "more than 128 levels"));
    let merged: String = (1..130).fold("a0: &a0 {b: 1}\n".to_owned(), |text, number| {
        text + &format!("a{number}: &a{number} {{b: {{<<: *a{}}}}}\n", number - 1)
    });
    assert_eq!(value(&merged).expect_err("130 levels").reason, "more than 128 levels");
}
