use super::*;
use hyper::header::HOST;

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
