use super::*;
use address::Endpoint;

fn next_of(location: Option<&str>, status: u16) -> Result<Option<String>, RequestFailure> {
    let url = HttpUrl {
        endpoint: Endpoint::Localhost(8080),
        authority: "localhost:8080".to_owned(),
        path: "/app/metrics?x=1".to_owned(),
    };
    let headers = location.map(|location| (LOCATION, location.parse().unwrap()));
    next(&url, 8080, StatusCode::from_u16(status).unwrap(), &headers.into_iter().collect())
}

#[test]
fn followed_on_the_same_port_only() {
    for (location, path) in [
        ("/metrics", "/metrics"),
        ("/metrics/?a=b#c", "/metrics/?a=b"),
        ("metrics/", "/app/metrics/"),
        ("../m", "/m"),
        ("?b", "/app/metrics?b"),
        ("http://localhost:8080/m", "/m"),
        ("http://LocalHost:8080", "/"),
        ("http://127.0.0.1:8080/m", "/m"),
        ("http://[::1]:8080/m", "/m"),
        ("//localhost:8080/m", "/m"),
        (" /m ", "/m"),
    ] {
        assert_eq!(next_of(Some(location), 307), Ok(Some(path.to_owned())), "{location}");
    }
    for location in [
        "",
        "http://localhost/m",
        "http://localhost:8081/m",
        "http://localhost:0/m",
        "https://localhost:8080/m",
        "http://example.com:8080/m",
        "http://169.254.169.254/latest",
        "http://127.0.0.2:8080/m",
        "http://localhost.example.com:8080/",
        "http://localhost:8080@10.0.0.1/m",
        "//10.0.0.1:8080/m",
        "mailto:x",
        "file:///etc/passwd",
        "http://[::1/m",
    ] {
        assert_eq!(next_of(Some(location), 302), Err(RequestFailure::BadRedirect), "{location}");
    }
    assert_eq!(next_of(None, 301), Err(RequestFailure::BadRedirect), "no Location");
}

#[test]
fn statuses() {
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(next_of(Some("/m"), status), Ok(Some("/m".to_owned())), "{status}");
    }
    for status in [200, 201, 300, 304, 305, 404, 500] {
        assert_eq!(next_of(Some("/m"), status), Ok(None), "{status}");
    }
}
