//! The expected values come from Go: `url.Parse`, `URL.ResolveReference`, `URL.RequestURI` and
//! `URL.String`, and for probes kubelet's `formatURL` before them.

use proptest::prelude::*;

use super::Url;
use crate::scheme::Scheme;

const AUTHORITY: &str = "10.0.0.5:8080";

/// The declared path, the request target, and the part of a `Referer` after the authority.
const PATHS: &[(&str, &str, &str)] = &[
    ("", "/", ""),
    ("healthz", "/healthz", "/healthz"),
    ("/healthz", "/healthz", "/healthz"),
    ("/a?x=1", "/a?x=1", "/a?x=1"),
    ("?x=1", "/?x=1", "?x=1"),
    ("/a?", "/a?", "/a?"),
    ("?", "/?", "?"),
    ("/a??", "/a??", "/a??"),
    ("/a?x?y", "/a?x?y", "/a?x?y"),
    ("/a?x=%zz&\"é", "/a?x=%zz&\"é", "/a?x=%zz&\"é"),
    ("/a#top", "/a", "/a#top"),
    ("/a?x#top?y", "/a?x", "/a?x#top?y"),
    ("#top", "/", "#top"),
    ("/a b", "/a%20b", "/a%20b"),
    ("/é", "/%C3%A9", "/%C3%A9"),
    ("/a\tb", "/a%09b", "/a%09b"),
    ("/\x7f", "/%7F", "/%7F"),
    ("/a\nb?c#d", "/a%0Ab%3Fc%23d", "/a%0Ab%3Fc%23d"),
    ("/a%2Fb", "/a%2Fb", "/a%2Fb"),
    ("/a%2fb", "/a%2fb", "/a%2fb"),
    ("/%41", "/%41", "/%41"),
    ("/%zz", "/%25zz", "/%25zz"),
    ("/%", "/%25", "/%25"),
    ("/%4", "/%254", "/%254"),
    ("/a?b%zz", "/a?b%zz", "/a?b%zz"),
    ("/%zz?x=1#y", "/%25zz%3Fx=1%23y", "/%25zz%3Fx=1%23y"),
    ("a%zz", "/a%25zz", "/a%25zz"),
    ("http://other/x", "/x", "/x"),
    ("http://other", "/", ""),
    ("https://other:9/x?y#z", "/x?y", "/x?y#z"),
    ("HTTP://other", "/", ""),
    ("//other/x", "/x", "/x"),
    ("//other", "/", ""),
    ("//", "/", ""),
    ("///x", "///x", "///x"),
    ("////x", "////x", "////x"),
    ("http:///x", "/x", "/x"),
    ("http:/x", "/x", "/x"),
    ("http:", "/", ""),
    ("http:?x", "/?x", "?x"),
    ("http://other:port/x", "/http://other:port/x", "/http://other:port/x"),
    ("http://[::1/x", "/http://%5B::1/x", "/http://%5B::1/x"),
    ("http://a b/x", "/http://a%20b/x", "/http://a%20b/x"),
    ("//a:b:c/x", "//a:b:c/x", "//a:b:c/x"),
    ("ftp://other/x", "/x", "/x"),
    ("*", "/*", "/*"),
    ("/*", "/*", "/*"),
    ("%2A", "/*", "/*"),
    ("%2a", "/%2a", "/%2a"),
    ("a/*", "/a/*", "/a/*"),
    (":x", "/:x", "/:x"),
    ("1:b", "/1:b", "/1:b"),
    ("./a:b", "/./a:b", "/./a:b"),
    ("/a:b", "/a:b", "/a:b"),
    ("a/b:c", "/a/b:c", "/a/b:c"),
    ("mailto:/x", "/x", "/x"),
    ("cache_object:foo", "/cache_object:foo", "/cache_object:foo"),
    ("http://u p@other/x", "/http://u%20p@other/x", "/http://u%20p@other/x"),
    (".", "/.", "/."),
    ("..", "/..", "/.."),
    ("/.", "/.", "/."),
    ("/..", "/..", "/.."),
    ("/a/../b", "/a/../b", "/a/../b"),
    ("/./a//b/", "/./a//b/", "/./a//b/"),
    ("//a/../b", "/../b", "/../b"),
    ("/a;b=c,d", "/a;b=c,d", "/a;b=c,d"),
    ("/a[b]{c}|d\\e^f`g", "/a%5Bb%5D%7Bc%7D%7Cd%5Ce%5Ef%60g", "/a%5Bb%5D%7Bc%7D%7Cd%5Ce%5Ef%60g"),
    ("/!$&'()*+,;=:@-._~", "/!$&'()*+,;=:@-._~", "/!$&'()*+,;=:@-._~"),
    ("/a!b c", "/a%21b%20c", "/a%21b%20c"),
    ("/<>\"", "/%3C%3E%22", "/%3C%3E%22"),
    ("/a?<>\"{}|\\^`", "/a?<>\"{}|\\^`", "/a?<>\"{}|\\^`"),
    ("/a\x01%zz", "/a%01%25zz", "/a%01%25zz"),
    ("/日本/健康", "/%E6%97%A5%E6%9C%AC/%E5%81%A5%E5%BA%B7", "/%E6%97%A5%E6%9C%AC/%E5%81%A5%E5%BA%B7"),
    ("/a%C3%A9é", "/a%C3%A9%C3%A9", "/a%C3%A9%C3%A9"),
    ("/#%zz", "/%23%25zz", "/%23%25zz"),
    ("/a#b c", "/a", "/a#b%20c"),
    ("/a%23b%3Fc", "/a%23b%3Fc", "/a%23b%3Fc"),
    ("/%25zz", "/%25zz", "/%25zz"),
    ("/%2e%2e/a", "/%2e%2e/a", "/%2e%2e/a"),
];

/// Declared paths from which kubelet makes a URL without a host, or with a user name.
const IGNORED_HEADERS: &[(&str, &str)] = &[
    ("a:b", "opaque"),
    ("a:b/c", "opaque"),
    ("mailto:x", "opaque"),
    ("http://u:p@other/x", "user"),
    ("//u@other/x", "user"),
    ("//@other/x", "user"),
];

/// A reference, and the result of resolving it against [`BASE`]. `USER@` matches any user name.
const REFERENCES: &[(&[u8], &str)] = &[
    (b"", "http://10.0.0.5:8080/b/c/d;p?q#f"),
    (b"g", "http://10.0.0.5:8080/b/c/g"),
    (b"./g", "http://10.0.0.5:8080/b/c/g"),
    (b"g/", "http://10.0.0.5:8080/b/c/g/"),
    (b"/g", "http://10.0.0.5:8080/g"),
    (b"//g", "http://g"),
    (b"?y", "http://10.0.0.5:8080/b/c/d;p?y"),
    (b"g?y", "http://10.0.0.5:8080/b/c/g?y"),
    (b"#s", "http://10.0.0.5:8080/b/c/d;p?q#s"),
    (b"g#s", "http://10.0.0.5:8080/b/c/g#s"),
    (b"g?y#s", "http://10.0.0.5:8080/b/c/g?y#s"),
    (b";x", "http://10.0.0.5:8080/b/c/;x"),
    (b"g;x", "http://10.0.0.5:8080/b/c/g;x"),
    (b".", "http://10.0.0.5:8080/b/c/"),
    (b"./", "http://10.0.0.5:8080/b/c/"),
    (b"..", "http://10.0.0.5:8080/b/"),
    (b"../", "http://10.0.0.5:8080/b/"),
    (b"../g", "http://10.0.0.5:8080/b/g"),
    (b"../..", "http://10.0.0.5:8080/"),
    (b"../../", "http://10.0.0.5:8080/"),
    (b"../../g", "http://10.0.0.5:8080/g"),
    (b"../../../g", "http://10.0.0.5:8080/g"),
    (b"../../../../g", "http://10.0.0.5:8080/g"),
    (b"/./g", "http://10.0.0.5:8080/g"),
    (b"/../g", "http://10.0.0.5:8080/g"),
    (b"g.", "http://10.0.0.5:8080/b/c/g."),
    (b".g", "http://10.0.0.5:8080/b/c/.g"),
    (b"g..", "http://10.0.0.5:8080/b/c/g.."),
    (b"..g", "http://10.0.0.5:8080/b/c/..g"),
    (b"./../g", "http://10.0.0.5:8080/b/g"),
    (b"./g/.", "http://10.0.0.5:8080/b/c/g/"),
    (b"g/./h", "http://10.0.0.5:8080/b/c/g/h"),
    (b"g/../h", "http://10.0.0.5:8080/b/c/h"),
    (b"g;x=1/./y", "http://10.0.0.5:8080/b/c/g;x=1/y"),
    (b"g;x=1/../y", "http://10.0.0.5:8080/b/c/y"),
    (b"g?y/./x", "http://10.0.0.5:8080/b/c/g?y/./x"),
    (b"g?y/../x", "http://10.0.0.5:8080/b/c/g?y/../x"),
    (b"g#s/./x", "http://10.0.0.5:8080/b/c/g#s/./x"),
    (b"http:g", "opaque"),
    (b"?", "http://10.0.0.5:8080/b/c/d;p?"),
    (b"#", "http://10.0.0.5:8080/b/c/d;p?q#f"),
    (b"//", "http://10.0.0.5:8080/b/c/d;p?q#f"),
    (b"///g", "http://10.0.0.5:8080///g"),
    (b"//10.0.0.5", "http://10.0.0.5"),
    (b"//10.0.0.5:9090/g", "http://10.0.0.5:9090/g"),
    (b"http://10.0.0.5", "http://10.0.0.5"),
    (b"HTTP://10.0.0.5:8080/g", "http://10.0.0.5:8080/g"),
    (b"https://10.0.0.5/g?x", "https://10.0.0.5/g?x"),
    (b"http://10.0.0.5:8080/a/../b/./c", "http://10.0.0.5:8080/b/c"),
    (b"http://10.0.0.5:8080//a//b", "http://10.0.0.5:8080//a//b"),
    (b"http://10.0.0.5:8080?y", "http://10.0.0.5:8080?y"),
    (b"http://10.0.0.5:8080#s", "http://10.0.0.5:8080#s"),
    (b"%2e%2e/g", "http://10.0.0.5:8080/b/c/%2e%2e/g"),
    (b"g%2Fh", "http://10.0.0.5:8080/b/c/g%2Fh"),
    (b"g h", "http://10.0.0.5:8080/b/c/g%20h"),
    (b"g\xffh", "http://10.0.0.5:8080/b/c/g%FFh"),
    (b"\xc3\xa9", "http://10.0.0.5:8080/b/c/%C3%A9"),
    (b"*", "http://10.0.0.5:8080/b/c/*"),
    (b"g//h/../i", "http://10.0.0.5:8080/b/c/g//i"),
    (b"/%zz", "refused"),
    (b"%", "refused"),
    (b"#%zz", "refused"),
    (b"\x01", "refused"),
    (b"g\x7f", "refused"),
    (b"#\x01", "http://10.0.0.5:8080/b/c/d;p?q#%01"),
    (b":g", "refused"),
    (b"1:g", "refused"),
    (b"a:g", "opaque"),
    (b"./a:g", "http://10.0.0.5:8080/b/c/a:g"),
    (b"http://10.0.0.5:80a/", "refused"),
    (b"http://[fd00::5]:8080/g", "http://[fd00::5]:8080/g"),
    (b"http://[fd00::5", "refused"),
    (b"http://10.0.0.5:8080:1/", "refused"),
    (b"mongodb://a:1,b:2/", "mongodb://a:1,b:2/"),
    (b"http://u:p@10.0.0.5:8080/g", "http://USER@10.0.0.5:8080/g"),
    (b"//@/g", "http://USER@/g"),
    (b"http://u p@10.0.0.5/", "refused"),
    (b"http://10.0.0.5:/g", "http://10.0.0.5:/g"),
    (b"http://[::1%25eth0]/g", "http://[::1%eth0]/g"),
    (b"http://[::1%25]/", "refused"),
    (b"http://[::1%25a%20b]/", "http://[::1%a b]/"),
    (b"http://[::1%25%C3%A9]/", "refused"),
    (b"http://[1.2.3.4]/", "refused"),
    (b"http://a[::1]/", "refused"),
    (b"http://%41/", "refused"),
    (b"http://%C3%A9/", "http://é/"),
    (b"http://a%25b/", "http://a%b/"),
    (b"http:///g", "http:///g"),
    (b"mailto:x", "opaque"),
    (b"ftp://10.0.0.5/g", "ftp://10.0.0.5/g"),
    (b"http://10.0.0.5\\g", "refused"),
    (b"\\g", "http://10.0.0.5:8080/b/c/%5Cg"),
    (b"http://10.0.0.5<g/", "http://10.0.0.5<g/"),
    (b"/g?a b", "http://10.0.0.5:8080/g?a b"),
    (b"/g?%zz", "http://10.0.0.5:8080/g?%zz"),
    (b"?#", "http://10.0.0.5:8080/b/c/d;p?"),
    (b"/.", "http://10.0.0.5:8080/"),
    (b"/..", "http://10.0.0.5:8080/"),
    (b"/a/b/../../..", "http://10.0.0.5:8080/"),
    (b"...", "http://10.0.0.5:8080/b/c/..."),
    (b"/.../", "http://10.0.0.5:8080/.../"),
    (b"*/..", "http://10.0.0.5:8080/b/c/"),
    (b"/g\t", "refused"),
];
const BASE: &str = "http://10.0.0.5:8080/b/c/d;p?q#f";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn describe(url: &Url) -> String {
    match (url.opaque, url.user.is_some()) {
        (true, _) => "opaque".into(),
        (_, true) => text(&url.text()).replacen("://", "://USER@", 1),
        _ => text(&url.text()),
    }
}

fn resolve(base: &str, reference: &[u8]) -> String {
    let base = Url::parse(base.as_bytes()).expect("a base that parses");
    Url::parse(reference).map_or("refused".into(), |reference| describe(&base.resolve(&reference)))
}

#[test]
fn declared_paths_become_what_kubelet_sends() {
    for (declared, target, rest) in PATHS {
        let url = Url::probe(Scheme::Http, AUTHORITY, declared);
        assert!(!url.opaque && url.user.is_none(), "{declared:?}");
        assert_eq!(text(&url.request_target()), *target, "{declared:?}");
        assert_eq!(text(&url.text()), format!("http://{AUTHORITY}{rest}"), "{declared:?}");
        assert_eq!((text(url.hostname()), url.port()), ("10.0.0.5".into(), Some(8080)), "{declared:?}");
    }
}

#[test]
fn declared_paths_that_cannot_be_sent() {
    for (declared, why) in IGNORED_HEADERS {
        let url = Url::probe(Scheme::Http, AUTHORITY, declared);
        assert_eq!((url.opaque, url.user.is_some()), (*why == "opaque", *why == "user"), "{declared:?}");
        assert_eq!(url.is_sendable(), *why == "user", "{declared:?}");
    }
    for (declared, can) in
        [("/a?b c", false), ("/a b", true), ("/a?b+c", true), ("/a#b c", true), ("/a?b%20c", true)]
    {
        assert_eq!(Url::probe(Scheme::Http, AUTHORITY, declared).is_sendable(), can, "{declared:?}");
    }
}

#[test]
fn the_probe_decides_scheme_and_host() {
    for (scheme, authority, hostname, port) in [
        (Scheme::Https, "10.0.0.5:443", "10.0.0.5", 443),
        (Scheme::Http, "[fd00::5]:8080", "fd00::5", 8080),
        (Scheme::Https, "[fd00::5]:80", "fd00::5", 80),
    ] {
        let url = Url::probe(scheme, authority, "ftp://other:1/x?y#z");
        assert_eq!(text(&url.text()), format!("{}://{authority}/x?y#z", scheme.word()));
        assert_eq!((text(url.hostname()), url.port()), (hostname.into(), Some(port)));
    }
}

#[test]
fn references_resolve_as_in_go() {
    for (reference, expected) in REFERENCES {
        assert_eq!(resolve(BASE, reference), *expected, "{:?}", text(reference));
    }
}

#[test]
fn relative_references_to_incomplete_bases() {
    for (base, reference, expected) in [
        ("http://10.0.0.5:8080", "g", "http://10.0.0.5:8080/g"),
        ("http://10.0.0.5:8080", "", "http://10.0.0.5:8080"),
        ("http://10.0.0.5:8080", "?y", "http://10.0.0.5:8080?y"),
        ("http://10.0.0.5:8080", "..", "http://10.0.0.5:8080/"),
        // A bare question mark is sent, but not inherited.
        ("http://10.0.0.5:8080/a?", "#s", "http://10.0.0.5:8080/a#s"),
        ("http://10.0.0.5:8080/a?", "", "http://10.0.0.5:8080/a"),
        ("http://10.0.0.5:8080/a?x", "?", "http://10.0.0.5:8080/a?"),
        ("http://10.0.0.5:8080//a/../b", "c", "http://10.0.0.5:8080//c"),
        ("https://[fd00::5]:8080/a", "//[fd00::5]/b", "https://[fd00::5]/b"),
        ("http://u:p@10.0.0.5:8080/a", "b", "http://USER@10.0.0.5:8080/b"),
    ] {
        assert_eq!(resolve(base, reference.as_bytes()), expected, "{base} {reference:?}");
    }
}

#[test]
fn hostname_and_port() {
    for (url, hostname, port) in [
        ("http://10.0.0.5/", "10.0.0.5", Some(80)),
        ("https://10.0.0.5/", "10.0.0.5", Some(443)),
        ("http://10.0.0.5:/", "10.0.0.5", Some(80)),
        ("http://10.0.0.5:0/", "10.0.0.5", Some(0)),
        ("http://10.0.0.5:00080/", "10.0.0.5", Some(80)),
        ("http://10.0.0.5:65535/", "10.0.0.5", Some(65535)),
        ("http://10.0.0.5:65536/", "10.0.0.5", None),
        ("http://10.0.0.5:99999999999999999999999/", "10.0.0.5", None),
        ("http://[fd00::5]/", "fd00::5", Some(80)),
        ("http://[fd00::5]:8080/", "fd00::5", Some(8080)),
        ("http://[FD00::5]/", "FD00::5", Some(80)),
        ("http://[::ffff:10.0.0.5]/", "::ffff:10.0.0.5", Some(80)),
        ("http://[::1%25eth0]:8/", "::1%eth0", Some(8)),
        ("ftp://10.0.0.5/", "10.0.0.5", None),
        ("ftp://10.0.0.5:21/", "10.0.0.5", None),
        ("mongodb://a:1,b:2/", "a:1,b", None),
        ("http:///", "", Some(80)),
    ] {
        let parsed = Url::parse(url.as_bytes()).expect(url);
        assert_eq!((text(parsed.hostname()), parsed.port()), (hostname.into(), port), "{url}");
    }
}

/// For each part of a URL, lists the ASCII bytes that stay unencoded if nothing else has to be
/// encoded, and those that stay unencoded next to a byte that has to be encoded; and the bytes that
/// a host and a user name may contain.
#[test]
fn every_byte_in_every_part() {
    const ALNUM: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let check = |name: &str, more: &str, kept: &dyn Fn(u8) -> bool| {
        for byte in 0..=255u8 {
            let expected = ALNUM.bytes().chain(more.bytes()).any(|other| other == byte);
            assert_eq!(kept(byte), expected, "{name} {byte:#x}");
        }
    };
    let parse =
        |head: &str, byte: u8, tail: &str| Url::parse(&[head.as_bytes(), &[byte], tail.as_bytes()].concat());
    check("path", "!$&'()*+,-./:;=@[]_~", &|byte| {
        parse("/a", byte, "").is_some_and(|url| url.path == [b'/', b'a', byte])
    });
    check("path, encoded", "$&+,-./:;=@_~", &|byte| {
        parse("/a", byte, " ").is_some_and(|url| url.path == [b'/', b'a', byte, b'%', b'2', b'0'])
    });
    check("fragment", "!$&'()*+,-./:;=?@[]_~", &|byte| {
        parse("/#", byte, "").is_some_and(|url| url.fragment == [byte])
    });
    check("fragment, encoded", "!$&()*+,-./:;=?@_~", &|byte| {
        parse("/#", byte, " ").is_some_and(|url| url.fragment == [byte, b'%', b'2', b'0'])
    });
    check("host", "!\"$&'()*+,-.;<=>]_~", &|byte| {
        byte < 0x80 && parse("//a", byte, "b/").is_some_and(|url| url.host == [b'a', byte, b'b'])
    });
    check("user", "!$&'()*+,-.:;=@_~", &|byte| {
        parse("//a", byte, "b@c/")
            .is_some_and(|url| url.user.is_some() && url.host == b"c" && url.path == b"/")
    });
}

proptest! {
    #[test]
    fn arbitrary_bytes_parse_and_resolve_without_a_panic(
        base in "[ -~é]{0,40}",
        reference in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let base = Url::probe(Scheme::Https, "[fd00::5]:8080", &base);
        if let Some(reference) = Url::parse(&reference) {
            let url = base.resolve(&reference);
            let _ = (url.hostname(), url.port(), url.text(), url.request_target());
        }
    }

    /// The alphabet consists of bytes with a meaning in URLs, because random bytes rarely reach the
    /// branches of the parser.
    #[test]
    fn arbitrary_urls_resolve_to_an_encoded_path(reference in "[a-h:/?#@%\\[\\]\\.0-9 é]{0,24}") {
        let base = Url::probe(Scheme::Http, AUTHORITY, "/a/b?c");
        if let Some(reference) = Url::parse(reference.as_bytes()) {
            let url = base.resolve(&reference);
            prop_assert!(url.path.is_empty() || url.path.starts_with(b"/"));
            prop_assert!(url.path.iter().all(|byte| (b'!'..=b'~').contains(byte) && !b"?#".contains(byte)));
        }
    }

    /// The path that is sent for a declared path is itself a valid path, and declaring it gives the
    /// same path.
    #[test]
    fn text_is_encoded_once(declared in "/[ -~é\t]{0,40}") {
        let url = Url::probe(Scheme::Http, AUTHORITY, &declared);
        prop_assume!(url.is_sendable() && !url.path.starts_with(b"//"));
        let target = text(&url.request_target());
        prop_assert_eq!(text(&Url::probe(Scheme::Http, AUTHORITY, &target).request_target()), target);
    }
}

#[test]
fn a_scheme_begins_with_a_letter() {
    for (text, expected) in [
        ("svn+2-a.b:x", Some(("svn+2-a.b", "x"))),
        ("1a:x", Some(("", "1a:x"))),
        ("/a:x", Some(("", "/a:x"))),
        (":x", None),
    ] {
        let expected = expected.map(|(scheme, rest): (&str, &str)| (scheme.as_bytes(), rest.as_bytes()));
        assert_eq!(super::scheme(text.as_bytes()), expected, "{text}");
    }
}
