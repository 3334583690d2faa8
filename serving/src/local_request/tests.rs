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

#[test]
fn forwarded_and_browser_requests_are_rejected() {
    let headers = |name: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "127.0.0.1:15004".parse().unwrap());
        headers.insert(name, "127.0.0.1".parse().unwrap());
        headers
    };
    for (name, direct) in [
        ("accept", true),
        ("x-forwarded-proto", true),
        ("x-forwarded-for", false),
        ("forwarded", false),
        ("via", false),
        ("origin", false),
        ("x-envoy-external-address", false),
    ] {
        assert_eq!(is_direct(&headers(name)), direct, "{name}");
    }
    assert!(is_direct(&HeaderMap::new()), "HTTP/1.0 needs no Host");
}
