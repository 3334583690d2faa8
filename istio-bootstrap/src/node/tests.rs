use serde_json::json;

use super::{Node, Refused, Sources};
use crate::downward_api;
use crate::proxy_config::ProxyConfig;

fn sources(environment: &[(&str, &str)]) -> Sources {
    Sources {
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        labels: None,
        annotations: None,
        addresses: vec!["10.0.0.7".to_owned(), "10.0.0.7".to_owned(), "fd00::7".to_owned()],
        istio_version: "1.31.0".to_owned(),
        domain: "shop.svc.cluster.local".to_owned(),
        outlier_log_path: String::new(),
        log_as_json: false,
        only_file_credentials: false,
    }
}

#[test]
fn istiod_knows_the_pod_by_its_first_address_and_its_name() {
    let sources =
        sources(&[("POD_NAME", "web-1"), ("POD_NAMESPACE", "shop"), ("ISTIO_META_DNS_CAPTURE", "1")]);
    let node = Node::new(&sources, &ProxyConfig::default()).expect("valid values");
    assert_eq!(node.id, "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local");
    let expected = [
        ("INSTANCE_IPS", json!("10.0.0.7,fd00::7")),
        ("DNS_CAPTURE", json!("true")),
        ("ENVOY_STATUS_PORT", json!(15021)),
        ("ISTIO_VERSION", json!("1.31.0")),
        ("PILOT_SAN", json!(["istiod.istio-system.svc"])),
    ];
    for (field, value) in expected {
        assert_eq!(node.metadata[field], value, "{field}");
    }
    // istiod registers whatever has this field as a virtual machine.
    assert!(!node.metadata.contains_key("AUTO_REGISTER_GROUP"));
}

#[test]
fn a_value_of_a_wrong_type_is_named() {
    let cases = [
        (("ISTIO_META_DNS_CAPTURE", "yes"), "DNS_CAPTURE", "a boolean in quotes"),
        (("ISTIO_META_POD_PORTS", "x"), "POD_PORTS", "a list of ports as JSON in a text"),
        (("ISTIO_METAJSON_X", r#"{"name": 5}"#), "name", "a text"),
    ];
    for (variable, field, expected) in cases {
        let refused = Node::new(&sources(&[variable]), &ProxyConfig::default()).map(|_| ());
        assert_eq!(refused, Err(Refused { field: field.to_owned(), expected }));
    }
}

#[test]
fn files_of_the_downward_api_have_quoted_values() {
    let text = "app=\"web\"\nnote=\"two\\nlines\"\n\nno value\n";
    let read = downward_api::parse(text).expect("quoted values");
    let expected = [("app", "web"), ("note", "two\nlines")];
    assert_eq!(read, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(downward_api::parse("app=web"), Err("app".to_owned()));
}

#[test]
fn envoys_admin_interface_has_the_family_of_the_pod() {
    for (addresses, is_dual, expected) in [
        (&["10.0.0.7"][..], false, "127.0.0.1"),
        (&["fd00::7"], false, "::1"),
        (&["fd00::7", "10.0.0.7"], false, "127.0.0.1"),
        (&["fd00::7", "10.0.0.7"], true, "::1"),
        (&["10.0.0.7", "fd00::7"], true, "127.0.0.1"),
        (&[], false, "127.0.0.1"),
    ] {
        let mut sources = sources(&[("ISTIO_DUAL_STACK", if is_dual { "true" } else { "false" })]);
        sources.addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        let found = crate::parameters::localhost(&sources).to_string();
        assert_eq!(found, expected, "{addresses:?}, dual: {is_dual}");
    }
}
