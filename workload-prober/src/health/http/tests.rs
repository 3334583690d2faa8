use serde_json::json;
use workload_health::{WorkloadHandler, WorkloadProbe};

use super::*;

const HOST: &str = "10.0.0.7:8080";

fn get(fields: serde_json::Value) -> WorkloadHttpGet {
    match WorkloadProbe::parse(&json!({ "httpGet": fields })).unwrap().value.handler {
        WorkloadHandler::HttpGet(get) => get,
        other => panic!("{other:?}"),
    }
}

/// Returns where `location` leads to from `http://10.0.0.7:8080/a/b?c`.
fn follow(status: u16, location: &str) -> Option<String> {
    let url = Url::probe(Scheme::Http, HOST, "/a/b?c");
    let head = Head { status, location: Some(location.as_bytes().to_vec()) };
    redirect_target(&url, &head).map(|url| String::from_utf8(url.request_target()).unwrap())
}

#[test]
fn redirects_are_followed_on_the_same_origin_only() {
    for (location, expected) in [
        ("/x", Some("/x")),
        ("x?y", Some("/a/x?y")),
        ("?z", Some("/a/b?z")),
        ("http://10.0.0.7:8080/x", Some("/x")),
        ("HTTP://10.0.0.7:8080", Some("/")),
        ("//10.0.0.7:8080/x", Some("/x")),
        ("/x#y", Some("/x")),
        ("https://10.0.0.7:8080/x", None),
        ("http://10.0.0.7:8081/x", None),
        ("http://10.0.0.7/x", None),
        ("http://10.0.0.8:8080/x", None),
        ("http://evil.example/x", None),
        ("//evil.example:8080/x", None),
        ("mailto:a@b", None),
        ("http://[", None),
        ("", None),
    ] {
        let expected = expected.filter(|_| !location.is_empty()).map(str::to_owned);
        // An empty location resolves to the same URL, which ends at the limit of ten requests.
        let expected = if location.is_empty() { Some("/a/b?c".to_owned()) } else { expected };
        assert_eq!(follow(302, location), expected, "{location}");
    }
    for (status, follows) in [
        (301, true),
        (303, true),
        (307, true),
        (308, true),
        (300, false),
        (304, false),
        (200, false),
        (401, false),
    ] {
        assert_eq!(follow(status, "/x").is_some(), follows, "{status}");
    }
    let ports = |scheme, host: &str, location: &str| {
        let head = Head { status: 302, location: Some(location.as_bytes().to_vec()) };
        redirect_target(&Url::probe(scheme, host, "/"), &head).is_some()
    };
    assert!(ports(Scheme::Http, "10.0.0.7:80", "http://10.0.0.7/x"), "80 is the default port of http");
    assert!(ports(Scheme::Https, "10.0.0.7:443", "https://10.0.0.7/x"), "443 is the default port of https");
    assert!(ports(Scheme::Http, "[fd00::7]:80", "http://[FD00:0::7]/x"), "the same address");
    assert!(ports(Scheme::Http, "App.local:80", "http://aPP.LOCAL/x"), "names are case-insensitive");
}

#[test]
fn requests() {
    for (fields, line, headers) in [
        (json!({"port": 8080}), "10.0.0.7:8080 /", "accept: */*"),
        (
            json!({"port": 8080, "path": "/a b?c d", "httpHeaders": [{"name": "hOST", "value": "x.local"}, {"name": "X-A", "value": " 1 "}, {"name": "x-a", "value": "2"}]}),
            "x.local /a%20b?c%20d",
            "accept: */*, x-a: 1, x-a: 2",
        ),
        (
            json!({"port": 8080, "httpHeaders": [{"name": "Accept", "value": ""}, {"name": "user-AGENT", "value": "me"}]}),
            "10.0.0.7:8080 /",
            "user-agent: me",
        ),
    ] {
        let request = request(&get(fields.clone()), "10.0.0.7");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let found: Vec<String> =
            request.headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
        assert_eq!(found.join(", "), headers, "{fields}");
        let found = format!("{} {}", text(request.authority()), text(&request.url.request_target()));
        assert_eq!(found, line, "{fields}");
    }
}

#[test]
fn authorities() {
    for (host, expected) in
        [("10.0.0.7", "10.0.0.7:80"), ("fd00::7", "[fd00::7]:80"), ("App.local", "App.local:80")]
    {
        assert_eq!(authority(host, 80), expected);
    }
}
