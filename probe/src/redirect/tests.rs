//! The expected requests are those that Go's client with kubelet's `RedirectChecker` sent over the
//! network.

use proptest::prelude::*;

use super::Redirect;
use crate::{Connection, Header, HttpGet, ProxyPorts, Request, Scheme};

const POD: &str = "10.0.0.5";
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

fn request(scheme: Scheme, path: &str, headers: &[(&str, &str)]) -> Request {
    let header = |(name, value): &(&str, &str)| Header { name: (*name).into(), value: (*value).into() };
    let headers = headers.iter().map(header).collect();
    Request::new(&HttpGet { path: path.into(), port: 8080, scheme, headers }, &format!("{POD}:8080"))
}

fn redirect(request: &Request, status: u16, location: &[u8]) -> Redirect {
    Redirect::decide(request, status, Some(location), 1, POD, &ProxyPorts::new([19000]))
}

/// Follows each status and `Location` in turn; returns URL, `Host`, `Referer` and declared headers
/// of the last request.
fn follow(first: &Request, hops: &[(u16, &str)]) -> [String; 4] {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut request = first.clone();
    for (status, location) in hops {
        match redirect(&request, *status, location.as_bytes()) {
            Redirect::Follow(next) => request = *next,
            other => panic!("{location}: {other:?}"),
        }
    }
    let declared = request.sent_headers(Connection::Close).filter(|(name, _)| !matches!(*name, b"accept"));
    let declared: Vec<_> = declared.map(|(name, value)| format!("{}: {}", text(name), text(value))).collect();
    let url = format!(
        "{}://{}{}",
        text(&request.url.scheme),
        text(&request.url.host),
        text(&request.url.request_target())
    );
    let referer = request.referer.as_deref().map_or("none".into(), text);
    [url, text(request.authority()), referer, declared.join(", ")]
}

#[test]
fn locations() {
    let first = request(Scheme::Http, "/a/b?x=1", &[]);
    for (location, expected) in [
        // Relative references, absolute URLs, and references without a scheme.
        ("c", "http://10.0.0.5:8080/a/c"),
        ("/c?y", "http://10.0.0.5:8080/c?y"),
        ("../../c", "http://10.0.0.5:8080/c"),
        ("?y", "http://10.0.0.5:8080/a/b?y"),
        ("?", "http://10.0.0.5:8080/a/b?"),
        ("#s", "http://10.0.0.5:8080/a/b?x=1"),
        ("//", "http://10.0.0.5:8080/a/b?x=1"),
        (" /c\t", "http://10.0.0.5:8080/c"),
        ("/c d/é", "http://10.0.0.5:8080/c%20d/%C3%A9"),
        ("http://10.0.0.5:8080/c", "http://10.0.0.5:8080/c"),
        ("HTTP://10.0.0.5:8080", "http://10.0.0.5:8080/"),
        ("//10.0.0.5:8080/c", "http://10.0.0.5:8080/c"),
        // The port or the scheme differs.
        ("http://10.0.0.5/c", "http://10.0.0.5/c"),
        ("http://10.0.0.5:9090/c", "http://10.0.0.5:9090/c"),
        ("https://10.0.0.5/c", "https://10.0.0.5/c"),
        ("https://10.0.0.5:8443/c", "https://10.0.0.5:8443/c"),
        ("//10.0.0.5/c", "http://10.0.0.5/c"),
        ("http://10.0.0.5:/c", "http://10.0.0.5:/c"),
        ("http://10.0.0.5:080/c", "http://10.0.0.5:080/c"),
        // Go's client sends a blank in a query as it is.
        ("/c?d e", "http://10.0.0.5:8080/c?d e"),
        // The host differs, so the response is final.
        ("http://10.0.0.6:8080/c", "last"),
        ("http://localhost:8080/c", "last"),
        ("http://10.0.0.5.example.com/c", "last"),
        ("http://010.0.0.5/c", "last"),
        ("http://169.254.169.254/latest", "last"),
        ("//other/c", "last"),
        ("///c", "http://10.0.0.5:8080///c"),
        ("http:///c", "last"),
        ("http://other:15020/c", "last"),
        ("http://u@other/c", "last"),
        ("http://[::ffff:10.0.0.5]:8080/c", "last"),
        ("http:c", "last"),
        ("mailto:c", "last"),
        ("ftp://other/c", "last"),
        ("http://[::1%25eth0]/c", "last"),
        ("", "last"),
        ("  ", "last"),
        // The location is invalid, or cannot be connected to.
        ("/%zz", "broken"),
        ("#%zz", "broken"),
        ("/\u{1}", "broken"),
        (":c", "broken"),
        ("1:c", "broken"),
        ("http://10.0.0.5:8080:1/c", "broken"),
        ("http://10.0.0.5:port/c", "broken"),
        ("http://[::1/c", "broken"),
        ("http://other/%zz", "broken"),
        ("ftp://10.0.0.5/c", "broken"),
        ("http://10.0.0.5:0/c", "broken"),
        ("http://10.0.0.5:65536/c", "broken"),
        ("http://10.0.0.5:99999999999999999999/c", "broken"),
        // The port belongs to the proxy.
        ("http://10.0.0.5:15020/app-health/app/livez", "broken"),
        ("//10.0.0.5:15000/quitquitquit", "broken"),
        ("https://10.0.0.5:19000/", "broken"),
        ("http://10.0.0.5:0015021/", "broken"),
    ] {
        for status in STATUSES {
            match (redirect(&first, status, location.as_bytes()), expected) {
                (Redirect::Final, "last") | (Redirect::Invalid, "broken") => {}
                (Redirect::Follow(_), url) => {
                    assert_eq!(follow(&first, &[(status, location)])[0], url, "{location:?}")
                }
                (other, _) => panic!("{location:?}: {other:?}"),
            }
        }
    }
}

/// The expected values are those of Go's `SetBasicAuth`: base64 of name, colon, password.
#[test]
fn a_user_name_becomes_an_authorization() {
    let plain = request(Scheme::Http, "/a", &[]);
    let declared = request(Scheme::Http, "/a", &[("Authorization", "mine")]);
    for (first, location, expected) in [
        (&plain, "http://u:p@10.0.0.5:8080/c", Some("Basic dTpw")),
        (&plain, "http://u@10.0.0.5/", Some("Basic dTo=")),
        (&plain, "//Aladdin:open%20sesame@10.0.0.5/", Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")),
        (&plain, "/c", None),
        (&declared, "http://u:p@10.0.0.5:8080/c", None),
    ] {
        let Redirect::Follow(next) = redirect(first, 302, location.as_bytes()) else { panic!("{location}") };
        let sent = next.authorization.as_deref().map(String::from_utf8_lossy);
        assert_eq!(sent.as_deref(), expected, "{location}");
        assert!(next.host.is_none() && !next.url.text().contains(&b'@'));
    }
}

#[test]
fn locations_that_are_not_utf8() {
    let first = request(Scheme::Http, "/a", &[]);
    for (location, target) in
        [(b"/\xff\xfe".as_slice(), b"/%FF%FE".as_slice()), (b"/\xc3?\xa9", b"/%C3?\xa9")]
    {
        let Redirect::Follow(next) = redirect(&first, 302, location) else { panic!("{location:x?}") };
        assert_eq!(next.url.request_target(), target);
    }
    assert_eq!(redirect(&first, 302, b"/\x7f"), Redirect::Invalid);
}

#[test]
fn statuses() {
    let first = request(Scheme::Http, "/a", &[]);
    for status in 200..600 {
        let asked = STATUSES.contains(&status);
        assert_eq!(Redirect::is_redirect_status(status), asked, "{status}");
        assert_eq!(matches!(redirect(&first, status, b"/b"), Redirect::Follow(_)), asked, "{status}");
        assert_eq!(redirect(&first, status, b"/%zz") == Redirect::Invalid, asked, "{status}");
        let none = Redirect::decide(&first, status, None, 1, POD, &ProxyPorts::default());
        assert_eq!(none, Redirect::Final, "{status} without a Location");
    }
}

#[test]
fn at_most_ten_requests() {
    let first = request(Scheme::Http, "/a", &[]);
    for (requests, location, expected) in [
        (1, "/b", "follow"),
        (9, "/b", "follow"),
        (10, "/b", "broken"),
        (11, "/b", "broken"),
        (u32::MAX, "/b", "broken"),
        // The host is checked before the number of requests.
        (10, "http://other/", "last"),
        (10, "", "last"),
    ] {
        let redirect =
            Redirect::decide(&first, 302, Some(location.as_bytes()), requests, POD, &ProxyPorts::default());
        let outcome = match redirect {
            Redirect::Follow(_) => "follow",
            Redirect::Final => "last",
            Redirect::Invalid => "broken",
        };
        assert_eq!(outcome, expected, "{requests} {location}");
    }
}

#[test]
fn ipv6() {
    let probe = HttpGet { path: "/a".into(), port: 8080, scheme: Scheme::Http, headers: vec![] };
    let first = Request::new(&probe, "[fd00::5]:8080");
    for (location, authority) in [
        ("/b", Some("[fd00::5]:8080")),
        ("http://[fd00::5]/b", Some("[fd00::5]")),
        ("https://[fd00::5]:8443/b", Some("[fd00::5]:8443")),
        ("http://[FD00::5]/b", None),
        ("http://[fd00:0::5]/b", None),
        ("http://[fd00::5%25eth0]/b", None),
    ] {
        match Redirect::decide(&first, 302, Some(location.as_bytes()), 1, "fd00::5", &ProxyPorts::default()) {
            Redirect::Follow(next) => {
                assert_eq!(Some(next.authority()), authority.map(str::as_bytes), "{location}")
            }
            other => assert_eq!((other, None), (Redirect::Final, authority), "{location}"),
        }
    }
}

#[test]
fn a_declared_host_outlives_relative_redirects() {
    let shop = [("Host", "shop.example.com")];
    let same = [("Host", "10.0.0.5:8080")];
    for (headers, hops, expected) in [
        (&shop[..], &[(301, "/b")][..], "shop.example.com"),
        (&shop, &[(302, "//10.0.0.5:9090/b")], "shop.example.com"),
        (&shop, &[(307, "http://10.0.0.5:8080/b")], "10.0.0.5:8080"),
        (&shop, &[(308, "https://10.0.0.5/b")], "10.0.0.5"),
        (&shop, &[(302, "/b"), (302, "/c"), (302, "/d")], "shop.example.com"),
        (&shop, &[(302, "/b"), (302, "http://10.0.0.5:8080/c"), (302, "/d")], "10.0.0.5:8080"),
        // A declared `Host` that equals the host of the URL counts as not declared.
        (&same, &[(302, "//10.0.0.5:9090/b")], "10.0.0.5:9090"),
        (&same, &[(302, "/b")], "10.0.0.5:8080"),
        (&[], &[(302, "http://10.0.0.5:/b")], "10.0.0.5:"),
    ] {
        assert_eq!(follow(&request(Scheme::Http, "/a", headers), hops)[1], expected, "{headers:?} {hops:?}");
    }
    let foreign = redirect(&request(Scheme::Http, "/a", &shop), 302, b"http://shop.example.com/b");
    assert_eq!(foreign, Redirect::Final, "a URL with the declared Host names another host");
}

#[test]
fn referers() {
    let (down, up) = ((302, "http://10.0.0.5:8080/d"), (302, "https://10.0.0.5/u"));
    for (scheme, path, declared, hops, referer, header) in [
        (Scheme::Http, "/a?x#top", None, &[(302, "b#low")][..], "http://10.0.0.5:8080/a?x#top", ""),
        (Scheme::Http, "/a", None, &[(302, "b#low"), (302, "c")], "http://10.0.0.5:8080/b#low", ""),
        (Scheme::Http, "", None, &[(302, "b")], "http://10.0.0.5:8080", ""),
        (Scheme::Http, "/a", None, &[up], "http://10.0.0.5:8080/a", ""),
        (Scheme::Https, "/a", None, &[up], "https://10.0.0.5:8080/a", ""),
        // No `Referer` is sent from TLS to plaintext; the next request has one again.
        (Scheme::Https, "/a", None, &[down], "none", ""),
        (Scheme::Https, "/a", None, &[down, (302, "/e")], "http://10.0.0.5:8080/d", ""),
        // A declared `Referer` is kept.
        (Scheme::Http, "/a", Some("mine"), &[(302, "b")], "none", "referer: mine"),
        (Scheme::Http, "/a", Some("mine"), &[(302, "b"), up, down], "none", "referer: mine"),
        (Scheme::Http, "/a", Some(""), &[(302, "b")], "http://10.0.0.5:8080/a", ""),
        (Scheme::Http, "/a", Some(""), &[(302, "b"), (302, "c")], "http://10.0.0.5:8080/b", ""),
    ] {
        let headers: Vec<_> = declared.map(|value| ("Referer", value)).into_iter().collect();
        let [_, _, sent, declared] = follow(&request(scheme, path, &headers), hops);
        assert_eq!(sent, referer, "{path} {hops:?}");
        let declared: Vec<_> = declared.split(", ").filter(|header| header.starts_with("referer")).collect();
        assert_eq!(declared.join(", "), header, "{path} {hops:?}");
    }
}

#[test]
fn headers_of_redirected_requests() {
    let content = [
        ("Content-Type", "a/b"),
        ("Content-Language", "de"),
        ("Content-Encoding", "x"),
        ("Content-Location", "/y"),
        ("Content-Md5", "z"),
    ];
    const ALL: &str = "content-type: a/b, content-language: de, content-encoding: x, content-location: /y, content-md5: z, connection: close";
    const REST: &str = "content-md5: z, connection: close";
    let secrets = [("Authorization", "Basic x"), ("Cookie", "a=b"), ("X-A", "1"), ("x-a", "2")];
    const SECRETS: &str = "authorization: Basic x, cookie: a=b, x-a: 1, x-a: 2";
    let connection = [("Connection", "keep-alive"), ("Keep-Alive", "5")];
    let (down, up) = ((307, "http://10.0.0.5:8080/d"), (307, "https://10.0.0.5/u"));
    for (scheme, headers, hops, expected) in [
        (Scheme::Http, &content[..], &[(307, "/b")][..], ALL.to_owned()),
        (Scheme::Http, &content, &[(308, "/b"), (307, "/c")], ALL.into()),
        (Scheme::Http, &content, &[(301, "/b")], REST.into()),
        (Scheme::Http, &content, &[(302, "/b")], REST.into()),
        (Scheme::Http, &content, &[(303, "/b")], REST.into()),
        // Headers that were dropped once are not sent again.
        (Scheme::Http, &content, &[(307, "/b"), (302, "/c"), (308, "/d")], REST.into()),
        // The Pod is the same host for every port and scheme.
        (Scheme::Http, &secrets, &[(302, "http://10.0.0.5:9090/b")], format!("{SECRETS}, connection: close")),
        (Scheme::Http, &secrets, &[(302, "/b"), up], SECRETS.into()),
        // Headers about the connection are sent again in plaintext.
        (Scheme::Http, &connection, &[up], String::new()),
        (
            Scheme::Http,
            &connection,
            &[up, down],
            "connection: keep-alive, keep-alive: 5, connection: close".into(),
        ),
        (
            Scheme::Https,
            &connection,
            &[down],
            "connection: keep-alive, keep-alive: 5, connection: close".into(),
        ),
        (Scheme::Https, &[], &[down], "connection: close".into()),
        (Scheme::Http, &[], &[(302, "/b"), (302, "/c")], "connection: close".into()),
    ] {
        assert_eq!(follow(&request(scheme, "/a", headers), hops)[3], expected, "{headers:?} {hops:?}");
    }
}

#[test]
fn redirects_keep_the_user_agent() {
    for (headers, expected) in
        [(&[][..], "connection: close"), (&[("User-Agent", "me")], "user-agent: me, connection: close")]
    {
        let first = request(Scheme::Http, "/a", headers);
        assert_eq!(follow(&first, &[(302, "/b"), (302, "/c")])[3], expected);
        let Redirect::Follow(next) = redirect(&first, 302, b"/b") else { panic!("a redirect") };
        assert_eq!(next.user_agent, first.user_agent);
    }
}

proptest! {
    /// For any response, a probe connects only to the Pod's address and never to a port of the
    /// proxy.
    #[test]
    fn arbitrary_locations_stay_in_the_pod(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        text in "(http:|https:|HTTP:)?(//)?(u@)?(10\\.0\\.0\\.5|other)?(:[0-9]{0,6})?[/?#%a-f@\\.]{0,8}",
        status in prop::sample::select(&STATUSES[..]),
    ) {
        let first = request(Scheme::Https, "/a/b?c", &[("Host", "shop"), ("Content-Type", "x")]);
        for location in [bytes.as_slice(), text.as_bytes()] {
            if let Redirect::Follow(next) = redirect(&first, status, location) {
                prop_assert_eq!(next.url.hostname(), POD.as_bytes());
                let port = next.url.port().expect("a port");
                prop_assert!(port > 0 && !ProxyPorts::new([19000]).contains(port));
            }
        }
    }
}
