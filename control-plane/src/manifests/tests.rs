use super::*;

#[test]
fn a_text_with_a_kind_looks_like_a_manifest() {
    for (text, expected) in [
        ("kind: Pod\na: [\n", true),
        ("apiVersion: v1\nkind: Pod\na: [\n", true),
        ("{\n  \"kind\": \"Pod\",\n", true),
        (r#"{"apiVersion":"v1","kind":"Pod","spec":{"containers":[}}"#, true),
        (r#"{"apiVersion":"v1", "kind" : "Pod""#, true),
        ("a: [\n", false),
        (r#"{"a":"kind","b":["kind"#, false),
        (r#"{"a":["kind", "b""#, false),
    ] {
        assert_eq!(has_kind(text), expected, "{text}");
    }
}
