use super::*;

#[test]
fn reachable_addresses() {
    for (address, expected) in [
        ("10.0.0.5", true),
        ("fd00::5", true),
        ("127.0.0.1", false),
        ("::1", false),
        ("::6", false),
        ("169.254.1.1", false),
        ("fe80::1", false),
        ("0.0.0.0", false),
    ] {
        assert_eq!(reachable(address.parse().unwrap()), expected, "{address}");
    }
}

#[test]
fn the_unspecified_address_without_ipv6() {
    for (ipv6, address, expected) in [
        (true, "[::]:1", "[::]:1"),
        (false, "[::]:1", "0.0.0.0:1"),
        (false, "[::1]:1", "[::1]:1"),
        (false, "10.0.0.5:1", "10.0.0.5:1"),
    ] {
        let machine = Machine { ipv6, probe_source4: true, probe_source6: false, address: None };
        assert_eq!(
            machine.any_address(address.parse().unwrap()),
            expected.parse().unwrap(),
            "{ipv6} {address}"
        );
    }
}

#[test]
fn quotas_are_rounded_up() {
    for (text, cpus) in [
        ("150000 100000\n", Some(2)),
        ("100000 100000", Some(1)),
        ("1000 100000", Some(1)),
        ("max 100000", None),
        ("-1 100000", None),
        ("0 100000", None),
        ("100000 0", None),
        ("", None),
    ] {
        assert_eq!(quota(text), cpus, "{text:?}");
    }
}
