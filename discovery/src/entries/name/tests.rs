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
    let found = target(node).map(|target| match target {
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
        (node("p", &["fe80::"], ""), "AUTO_REGISTER_GROUP: \"p-fe80--\" is not a DNS-1123 name"),
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
