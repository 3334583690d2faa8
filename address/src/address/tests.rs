use super::*;

#[test]
fn local_addresses() {
    let long = format!("unix:/{}", "x".repeat(107));
    let cases: [(&str, Result<&str, AddressError>); 11] = [
        ("127.0.0.1:15000", Ok("127.0.0.1:15000")),
        ("[::1]:15000", Ok("[::1]:15000")),
        ("localhost:15000", Ok("127.0.0.1:15000")),
        ("unix:/run/a.sock", Ok("unix:/run/a.sock")),
        ("unix:a.sock", Err(AddressError::RelativePath)),
        (&long, Err(AddressError::LongPath(108))),
        ("0.0.0.0:15000", Err(AddressError::NotLocal)),
        ("10.0.0.5:15000", Err(AddressError::NotLocal)),
        ("127.0.0.1:0", Err(AddressError::NotLocal)),
        ("127.0.0.1", Err(AddressError::NotLocal)),
        ("localhost.example.com:80", Err(AddressError::NotLocal)),
    ];
    for (text, expected) in cases {
        let found = text.parse::<LocalAddress>().map(|address| address.to_string());
        assert_eq!(
            found.as_deref().map_err(|e| format!("{e:?}")),
            expected.map_err(|e| format!("{e:?}")),
            "{text}"
        );
    }
}

#[test]
fn urls() {
    let url = |endpoint, authority: &str, path: &str| {
        Ok(HttpUrl { endpoint, authority: authority.to_owned(), path: path.to_owned() })
    };
    let cases = [
        (
            "http://localhost:15021/healthz/ready",
            url(Endpoint::Localhost(15021), "localhost:15021", "/healthz/ready"),
        ),
        ("http://127.0.0.1", url(Endpoint::Ip("127.0.0.1:80".parse().unwrap()), "127.0.0.1", "/")),
        ("http://[::1]:8/a?b", url(Endpoint::Ip("[::1]:8".parse().unwrap()), "[::1]:8", "/a?b")),
        ("http://sidecar:8/", url(Endpoint::Name("sidecar".into(), 8), "sidecar:8", "/")),
        ("unix:/run/a.sock:/x", url(Endpoint::Unix("/run/a.sock".into()), "localhost", "/x")),
        ("https://localhost/", Err(AddressError::HttpsUnsupported)),
        ("http://me@localhost/", Err(AddressError::InvalidUrl)),
        ("http://localhost:0/", Err(AddressError::InvalidUrl)),
        ("http://localhost:/", Err(AddressError::InvalidUrl)),
        ("http://localhost:65536/", Err(AddressError::InvalidUrl)),
        ("http://[::1]:70000", Err(AddressError::InvalidUrl)),
        ("http://127.0.0.1:+80/", Err(AddressError::InvalidUrl)),
        ("http://[::1]", url(Endpoint::Ip("[::1]:80".parse().unwrap()), "[::1]", "/")),
        ("localhost:15021", Err(AddressError::InvalidUrl)),
        ("unix:/run/a.sock", Err(AddressError::InvalidUrl)),
        ("", Err(AddressError::InvalidUrl)),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<HttpUrl>(), expected, "{text}");
    }
}

#[test]
fn cidr_blocks() {
    for (text, expected) in [
        ("10.0.0.0/8", Some(("10.0.0.0", 8))),
        ("10.0.0.5", Some(("10.0.0.5", 32))),
        ("fd00::/8", Some(("fd00::", 8))),
        ("::1", Some(("::1", 128))),
        ("10.0.0.0/33", None),
        ("10.0.0.0/", None),
        ("10.0.0.0/-1", None),
        ("node", None),
    ] {
        let expected =
            expected.map(|(address, prefix_len)| Cidr { address: address.parse().unwrap(), prefix_len });
        assert_eq!(text.parse::<Cidr>().ok(), expected, "{text}");
    }
}

#[test]
fn addresses_of_a_cidr_block() {
    for (block, address, expected) in [
        ("10.1.0.0/16", "10.1.255.255", true),
        ("10.1.0.0/16", "10.2.0.0", false),
        ("10.1.2.3/16", "10.1.0.0", true),
        ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.2", false),
        ("0.0.0.0/0", "192.0.2.1", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "192.0.2.1", false),
        ("fd00::/8", "fd12::1", true),
        ("fd00::/8", "fe00::1", false),
        ("fd00::1", "fd00::1", true),
    ] {
        let found = block.parse::<Cidr>().unwrap().contains(address.parse().unwrap());
        assert_eq!(found, expected, "{address} in {block}");
    }
}

#[test]
fn values_or_off() {
    assert_eq!("off".parse::<OrOff<HttpUrl>>(), Ok(OrOff::Off));
    assert_eq!("OFF".parse::<OrOff<HttpUrl>>(), Err(AddressError::InvalidUrl));
}

#[test]
fn conflicting_addresses() {
    for (one, other, expected) in [
        ("127.0.0.1:1", "127.0.0.1:1", true),
        ("127.0.0.1:1", "127.0.0.1:2", false),
        ("127.0.0.1:1", "127.0.0.2:1", false),
        ("127.0.0.1:1", "0.0.0.0:1", true),
        ("127.0.0.1:1", "[::]:1", true),
        ("127.0.0.1:1", "[::1]:1", false),
        ("127.0.0.1:1", "[::ffff:127.0.0.1]:1", true),
        ("[::1]:1", "[::]:1", true),
        ("[::1]:1", "0.0.0.0:1", false),
        ("0.0.0.0:1", "[::]:1", true),
    ] {
        let (a, b) = (one.parse().unwrap(), other.parse().unwrap());
        assert_eq!((conflicts(a, b), conflicts(b, a)), (expected, expected), "{one} {other}");
    }
}
