use super::*;

#[test]
fn sources() {
    for (first, second, same) in [
        ("192.0.2.1", "192.0.2.1", true),
        ("192.0.2.1", "192.0.2.2", false),
        ("192.0.2.1", "::ffff:192.0.2.1", true),
        ("2001:db8::1", "2001:db8::ffff:1", true),
        ("2001:db8::1", "2001:db8:0:1::1", false),
    ] {
        let source = |address: &str| Source::from(address.parse::<IpAddr>().unwrap());
        assert_eq!(source(first) == source(second), same, "{first} {second}");
    }
}

#[test]
fn a_source_is_shown_as_an_address_or_a_network() {
    for (address, shown) in [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ] {
        assert_eq!(Source::from(address.parse::<IpAddr>().unwrap()).to_string(), shown);
    }
}

#[test]
fn an_address_alone_does_not_share_its_network() {
    let node: IpAddr = "2001:db8::1".parse().unwrap();
    assert_ne!(Source::alone(node), Source::alone("2001:db8::2".parse().unwrap()));
    assert_ne!(Source::alone(node), Source::from(node));
    assert_eq!(Source::alone(node).to_string(), "2001:db8::1");
}
