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
        let machine =
            Machine { ipv6, probe_source4: true, probe_source6: false, gateways: Vec::new(), address: None };
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

#[test]
fn gateways_of_default_routes() {
    let number = u32::from_ne_bytes([10, 88, 0, 1]);
    let line = |destination: u32, gateway: u32| {
        format!("eth0\t{destination:08X}\t{gateway:08X}\t0003\t0\t0\t0\t00000000\t0\t0\t0")
    };
    let header = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
    for (line, expected) in [
        (line(0, number), Some("10.88.0.1")),
        (line(number, number), None),
        (line(0, 0), None),
        (header.into(), None),
        (String::new(), None),
    ] {
        assert_eq!(gateway4(&line), expected.map(|address| address.parse().unwrap()), "{line}");
    }
    let zeros = "0".repeat(32);
    let gateway = "fd000000000000000000000000000001";
    let line = |length: &str, gateway: &str| {
        format!("{zeros} {length} {zeros} 00 {gateway} 00000400 00000001 00000000 00000003     eth0")
    };
    for (line, expected) in [
        (line("00", gateway), Some("fd00::1")),
        (line("40", gateway), None),
        (line("00", &zeros), None),
        (String::new(), None),
    ] {
        assert_eq!(gateway6(&line), expected.map(|address| address.parse().unwrap()), "{line}");
    }
}
