use super::*;

fn blocks(words: &[&str]) -> Vec<Cidr> {
    words.iter().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn the_chain_of_each_client() {
    let loopback = ["127.0.0.1", "::1"];
    for (allow_from, node, general, of_node) in [
        // Without the node's address there is one chain.
        (vec![], vec![], None, vec![]),
        (vec!["10.0.0.0/8"], vec![], Some(vec!["127.0.0.1", "::1", "10.0.0.0/8"]), vec![]),
        // Nothing is listed twice, because Envoy rejects it.
        (
            vec!["10.0.0.0/8", "127.0.0.1", "10.0.0.0/8"],
            vec![],
            Some(vec!["127.0.0.1", "::1", "10.0.0.0/8"]),
            vec![],
        ),
        (vec![], vec!["192.0.2.1", "192.0.2.1", "fd00::1"], None, vec!["192.0.2.1", "fd00::1"]),
        // The node has its own chain only within the allowed clients, and beside others.
        (vec!["10.0.0.0/8"], vec!["10.0.0.1", "192.0.2.1"], Some(vec!["10.0.0.0/8"]), vec!["10.0.0.1"]),
        (vec!["10.0.0.0/8"], vec!["192.0.2.1"], Some(vec!["127.0.0.1", "::1", "10.0.0.0/8"]), vec![]),
        (vec!["10.0.0.1"], vec!["10.0.0.1"], Some(vec!["127.0.0.1", "::1", "10.0.0.1"]), vec![]),
        (
            vec!["10.0.0.1", "10.1.0.0/16"],
            vec!["10.0.0.1", "10.1.0.1"],
            Some(vec!["10.1.0.0/16"]),
            vec!["10.0.0.1", "10.1.0.1"],
        ),
    ] {
        let addresses: Vec<IpAddr> = node.iter().map(|address| address.parse().unwrap()).collect();
        let found = Clients::new(&blocks(&allow_from), &addresses);
        let of_node = if of_node.is_empty() { of_node } else { [&loopback[..], &of_node].concat() };
        let expected = Clients { general: general.as_deref().map(blocks), node: blocks(&of_node) };
        assert_eq!(found, expected, "{allow_from:?} {node:?}");
    }
}
