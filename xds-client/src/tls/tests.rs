use super::*;

#[test]
fn names() {
    for (text, host, known) in [
        ("discovery.example", "10.0.0.1", true),
        ("10.0.0.1", "discovery.example", true),
        ("::1", "discovery.example", true),
        ("spiffe://cluster.local/ns/a/sa/b", "10.0.0.1", true),
        ("a/b", "discovery.example", false),
        ("", "discovery.example", false),
    ] {
        assert_eq!(San::new(text, host).is_some(), known, "{text:?}");
    }
}
