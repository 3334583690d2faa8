use super::*;

#[test]
fn local_host_names() {
    for (host, local) in [
        ("localhost", true),
        ("LOCALHOST:15004", true),
        ("127.0.0.1", true),
        ("127.0.0.1:15004", true),
        ("[::1]:15004", true),
        ("127.1.2.3:15004", true),
        ("10.0.0.5:15004", false),
        ("evil.example", false),
        ("localhost.evil.example", false),
        ("a@localhost", false),
        ("0.0.0.0:15004", false),
        ("", false),
    ] {
        assert_eq!(is_local_host(host), local, "{host}");
    }
}

#[test]
fn all_hosts_must_be_local() {
    let mut headers = HeaderMap::new();
    assert!(has_local_host(&headers), "HTTP/1.0 needs no Host");
    headers.append(HOST, HeaderValue::from_static("localhost"));
    assert!(has_local_host(&headers));
    headers.append(HOST, HeaderValue::from_static("evil.example"));
    assert!(!has_local_host(&headers));
}
