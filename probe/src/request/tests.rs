//! The expected headers are those that Go's client wrote for kubelet's request, in the order in
//! which we send them.

use super::{Connection, Request, UserAgent};
use crate::{Header, HttpGet, Scheme};

const AUTHORITY: &str = "10.0.0.5:8080";

fn request(scheme: Scheme, path: &str, headers: &[(&str, &str)]) -> Request {
    let header = |(name, value): &(&str, &str)| Header { name: (*name).into(), value: (*value).into() };
    let headers = headers.iter().map(header).collect();
    Request::new(&HttpGet { path: path.into(), port: 8080, scheme, headers }, AUTHORITY)
}

fn sent(request: &Request) -> Vec<String> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    request
        .sent_headers(Connection::Close)
        .map(|(name, value)| format!("{}: {}", text(name), text(value)))
        .collect()
}

fn check(scheme: Scheme, headers: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(sent(&request(scheme, "/", headers)), expected, "{headers:?}");
}

#[test]
fn the_request_line_is_the_declared_path() {
    for (path, target) in [
        ("", "/"),
        ("healthz", "/healthz"),
        ("/a?x=1", "/a?x=1"),
        ("?x=1", "/?x=1"),
        ("/a?", "/a?"),
        ("/a#top", "/a"),
        ("/a b", "/a%20b"),
        ("/a%2Fb", "/a%2Fb"),
        ("/%zz", "/%25zz"),
        ("//other/x", "/x"),
    ] {
        for scheme in [Scheme::Http, Scheme::Https] {
            let request = request(scheme, path, &[]);
            assert_eq!(request.url.request_target(), target.as_bytes(), "{path:?}");
            assert_eq!(request.url.scheme, scheme.word().as_bytes());
            assert_eq!((request.authority(), request.referer.as_deref()), (AUTHORITY.as_bytes(), None));
        }
    }
}

#[test]
fn defaults() {
    check(Scheme::Http, &[], &["accept: */*", "connection: close"]);
    check(Scheme::Https, &[], &["accept: */*"]);
    assert_eq!(request(Scheme::Http, "/", &[]).user_agent, UserAgent::Kubelet);
}

#[test]
fn user_agents() {
    for (declared, expected) in [
        (&[("User-Agent", "mine/1")][..], Some("user-agent: mine/1")),
        (&[("user-agent", " mine/1\t")], Some("user-agent: mine/1")),
        (&[("USER-AGENT", "")], None),
        (&[("User-Agent", " ")], Some("user-agent: ")),
        (&[("User-Agent", "a"), ("user-agent", "b")], Some("user-agent: a")),
        (&[("User-Agent", ""), ("user-agent", "b")], None),
    ] {
        let request = request(Scheme::Http, "/", declared);
        assert_eq!(request.user_agent, UserAgent::Declared, "{declared:?}");
        let expected: Vec<_> = expected.into_iter().chain(["accept: */*", "connection: close"]).collect();
        assert_eq!(sent(&request), expected, "{declared:?}");
    }
}

#[test]
fn accepts() {
    for (declared, expected) in [
        (&[("Accept", "text/html")][..], &["accept: text/html"][..]),
        (&[("accept", "a"), ("Accept", "b")], &["accept: a", "accept: b"]),
        (&[("ACCEPT", "")], &[]),
        (&[("Accept", ""), ("Accept", "x")], &[]),
        (&[("Accept", "x"), ("Accept", "")], &["accept: x", "accept: "]),
        (&[("Accept", " ")], &["accept: "]),
    ] {
        check(Scheme::Https, declared, expected);
    }
}

#[test]
fn hosts() {
    for (declared, expected) in [
        (&[][..], AUTHORITY),
        (&[("Host", "shop.example.com")], "shop.example.com"),
        (&[("hOsT", "shop.example.com:1")], "shop.example.com:1"),
        (&[("Host", "a"), ("host", "b")], "a"),
        (&[("Host", "")], AUTHORITY),
        (&[("Host", ""), ("Host", "b")], AUTHORITY),
        (&[("X-Host", "a")], AUTHORITY),
    ] {
        let request = request(Scheme::Http, "/", declared);
        assert_eq!(request.authority(), expected.as_bytes(), "{declared:?}");
        assert!(!request.declares("host"), "`Host` is sent as the authority");
    }
    let v6 = HttpGet { path: "/".into(), port: 80, scheme: Scheme::Http, headers: vec![] };
    assert_eq!(Request::new(&v6, "[fd00::5]:80").authority(), b"[fd00::5]:80");
}

#[test]
fn declared_headers_keep_their_order() {
    check(
        Scheme::Https,
        &[
            ("X-A", "1"),
            ("x-b", " 2\t"),
            ("x-a", ""),
            ("X-A", "1"),
            ("Authorization", "é"),
            ("Accept-Encoding", "gzip"),
        ],
        &["accept: */*", "x-a: 1", "x-b: 2", "x-a: ", "x-a: 1", "authorization: é", "accept-encoding: gzip"],
    );
    check(
        Scheme::Https,
        &[
            ("Content-Length", "5"),
            ("Transfer-Encoding", "chunked"),
            ("TRAILER", "x"),
            ("Content-Type", "a/b"),
            ("TE", "trailers"),
        ],
        &["accept: */*", "content-type: a/b", "te: trailers"],
    );
}

#[test]
fn connections() {
    for (declared, plaintext) in [
        (&[("Connection", "Close")][..], &["connection: Close"][..]),
        (&[("Connection", "x, close")], &["connection: x, close"]),
        (&[("Connection", "x close")], &["connection: x close"]),
        (&[("Connection", "keep-alive")], &["connection: keep-alive", "connection: close"]),
        (&[("Connection", "closed")], &["connection: closed", "connection: close"]),
        (&[("Connection", "")], &["connection: ", "connection: close"]),
        // Go's client looks at the first one only.
        (
            &[("Connection", "x"), ("connection", "close")],
            &["connection: x", "connection: close", "connection: close"],
        ),
        (
            &[("Keep-Alive", "5"), ("Proxy-Connection", "y"), ("Upgrade", "z")],
            &["keep-alive: 5", "proxy-connection: y", "upgrade: z", "connection: close"],
        ),
        // A protocol upgrade keeps the connection open.
        (
            &[("Connection", "a, Upgrade"), ("Upgrade", "websocket")],
            &["connection: a, Upgrade", "upgrade: websocket"],
        ),
        (
            &[("Connection", "upgrade"), ("Upgrade", "")],
            &["connection: upgrade", "upgrade: ", "connection: close"],
        ),
    ] {
        let expected: Vec<_> = ["accept: */*"].iter().chain(plaintext).copied().collect();
        check(Scheme::Http, declared, &expected);
        check(Scheme::Https, declared, &["accept: */*"]);
    }
}

#[test]
fn declares_a_nonempty_header() {
    let request = request(
        Scheme::Http,
        "/",
        &[("X-Forwarded-Proto", "https"), ("X-Empty", ""), ("Content-Length", "1")],
    );
    for (name, declared) in
        [("x-forwarded-proto", true), ("x-empty", false), ("content-length", false), ("x-forwarded", false)]
    {
        assert_eq!(request.declares(name), declared, "{name}");
    }
}
