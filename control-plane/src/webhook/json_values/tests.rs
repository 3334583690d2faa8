use super::*;

#[test]
fn values_are_counted() {
    for (text, expected) in [
        ("1", 1),
        ("[1]", 2),
        (r#"{"a": 1, "b": [1, 2]}"#, 5),
        (r#"["a,[{\",\\", 1]"#, 3),
        (r#"{"a,b": "[,"}"#, 2),
    ] {
        assert_eq!(count(text.as_bytes()), expected, "{text}");
    }
}

/// The count may be too high for a text that is not JSON, but not too low.
#[test]
fn a_backslash_escapes_in_strings_only() {
    for (text, expected) in [(r#"["\",,,"]"#, 2), (r"[\,\[1]", 4)] {
        assert_eq!(count(text.as_bytes()), expected, "{text}");
    }
}
