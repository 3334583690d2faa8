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
