use std::collections::BTreeSet;

use super::*;

#[test]
fn addresses_of_one_network_are_one_source() {
    let addresses: BTreeSet<IpAddr> = addresses(100).into_iter().collect();
    assert_eq!(addresses.len(), 100);
    let sources: BTreeSet<IpAddr> = addresses.into_iter().map(source).collect();
    assert_eq!(sources, BTreeSet::from([Ipv6Addr::from_bits(HOSTILE).into()]));
}

#[test]
fn other_addresses_are_other_sources() {
    for address in [server(), honest(), "fd00:a77a:0:1::1".parse().unwrap()] {
        assert_ne!(source(address), source(addresses(1)[0]), "{address}");
    }
    let [one, other] = ["127.0.0.1", "127.0.0.2"].map(|text| text.parse().unwrap());
    assert_ne!(source(one), source(other));
}
