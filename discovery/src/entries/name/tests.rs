use super::*;

fn node(group: &str, ips: &[&str], network: &str) -> Node {
    Node {
        id: "sidecar~10.9.9.9~vm.shop~shop.svc.cluster.local".to_owned(),
        namespace: Some("shop".to_owned()),
        group: Some(group.to_owned()),
        instance_ips: ips.iter().map(|ip| (*ip).to_owned()).collect(),
        network: (!network.is_empty()).then(|| network.to_owned()),
        ..Node::default()
    }
}

fn check(node: &Node, expected: Result<&str, &str>) {
    check_from("10.0.0.7", node, expected);
}

fn check_from(peer: &str, node: &Node, expected: Result<&str, &str>) {
    let found = target(node, peer.parse().expect("an address")).map(|target| match target {
        None => "client".to_owned(),
        Some(RegistrationTarget::Group { entry, .. } | RegistrationTarget::Entry(entry)) => entry.to_string(),
    });
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{node:?}");
}

#[test]
fn entry_names() {
    let long = "a".repeat(249);
    let cut = format!("shop/{}-10.0.0.7", &long[..244]);
    let dashes = format!("x{}b", "-".repeat(246));
    let rows = [
        (node("payments", &["10.0.0.7"], ""), "shop/payments-10.0.0.7"),
        (node("payments", &["10.0.0.7", "10.0.0.8"], "dc1"), "shop/payments-10.0.0.7-dc1"),
        (node("payments", &[], ""), "shop/payments-10.9.9.9"),
        (node("payments", &["fd00::7"], "dc1"), "shop/payments-fd00--7-dc1"),
        (node("payments", &["FD00:0::7"], ""), "shop/payments-fd00--7"),
        (node("payments", &["::ffff:10.0.0.7"], ""), "shop/payments-10.0.0.7"),
        (node(&long, &["10.0.0.7"], ""), cut.as_str()),
        (node(&dashes, &["10.0.0.7"], ""), "shop/b-10.0.0.7"),
    ];
    for (node, expected) in rows {
        check(&node, Ok(expected));
    }
    check(
        &Node { workload_entry: Some("vm-7".to_owned()), group: None, ..node("", &["10.0.0.7"], "") },
        Ok("shop/vm-7"),
    );
    check(&Node::default(), Ok("client"));
}

#[test]
fn addresses_that_other_machines_cannot_reach_are_rejected() {
    for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.7.7", "fe80::7", "255.255.255.255"] {
        let canonical = address.parse::<IpAddr>().expect("an address").to_canonical();
        let error =
            format!("INSTANCE_IPS: must not be a loopback, link-local or broadcast address, got {canonical}");
        check(&node("payments", &[address], ""), Err(&error));
        // The operator chooses the address of an entry.
        let of_entry =
            Node { workload_entry: Some("vm-7".to_owned()), group: None, ..node("", &[address], "") };
        check(&of_entry, Ok("shop/vm-7"));
    }
    check_from("127.0.0.1", &node("payments", &["127.0.0.7"], ""), Ok("shop/payments-127.0.0.7"));
    let error = "INSTANCE_IPS: must begin with the workload's IP address, got \"224.0.0.1\"";
    check(&node("payments", &["224.0.0.1"], ""), Err(error));
}

#[test]
fn invalid_nodes_are_rejected() {
    let fine = node("payments", &["10.0.0.7"], "");
    let rows = [
        (
            Node { workload_entry: Some("vm".to_owned()), ..fine.clone() },
            "AUTO_REGISTER_GROUP, WORKLOAD_ENTRY: only one of them may be given",
        ),
        (Node { namespace: None, ..fine.clone() }, "NAMESPACE: is required"),
        (
            Node { namespace: Some("Shop".to_owned()), ..fine.clone() },
            "NAMESPACE: must be a DNS-1123 label, got \"Shop\"",
        ),
        (
            node("payments", &["vm-7"], ""),
            "INSTANCE_IPS: must begin with the workload's IP address, got \"vm-7\"",
        ),
        (
            node("payments", &["0.0.0.0"], ""),
            "INSTANCE_IPS: must begin with the workload's IP address, got \"0.0.0.0\"",
        ),
        (
            Node { id: "gateway".to_owned(), ..node("payments", &[], "") },
            "INSTANCE_IPS: must begin with the workload's IP address, got \"\"",
        ),
        (
            node("Payments", &["10.0.0.7"], ""),
            "AUTO_REGISTER_GROUP: must be a DNS-1123 name, got \"Payments\"",
        ),
        (node("p", &["fd00::"], ""), "AUTO_REGISTER_GROUP: \"p-fd00--\" is not a DNS-1123 name"),
        (node("p\n", &["10.0.0.7"], ""), "AUTO_REGISTER_GROUP: must be a DNS-1123 name, got \"p\\x0a\""),
        (
            Node { workload_entry: Some("a/b".to_owned()), group: None, ..fine.clone() },
            "WORKLOAD_ENTRY: must be a DNS-1123 name, got \"a/b\"",
        ),
    ];
    for (node, expected) in rows {
        check(&node, Err(expected));
    }
}
