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

#[test]
fn unusable_files_are_reported() {
    let missing = PathBuf::from("/nonexistent/file");
    let files = TlsFiles { ca: missing.clone(), cert: missing.clone(), key: missing };
    let error = files.read().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("--discovery-ca = \"/nonexistent/file\": No such file"), "{error}");
    let san = San::new("a", "a").unwrap();
    let content = TlsContent([vec![], vec![], vec![]]);
    let error = files.client(&content, &san).unwrap_err().to_string();
    assert!(error.ends_with("the file contains no PEM-encoded certificate"), "{error}");
}
