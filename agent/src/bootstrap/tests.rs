use super::template::UnknownPlaceholder;
use super::*;
use crate::envoy_version::EnvoyVersion;

fn bootstrap() -> Bootstrap {
    Bootstrap {
        probe_address: "[::]:15020".parse().unwrap(),
        stats_address: Some("[::]:15090".parse().unwrap()),
        local_address: "127.0.0.1:15004".parse().unwrap(),
        admin: "unix:/run/admin.sock".parse().unwrap(),
        filter: FilterCode::File("/run/filter.wasm".into()),
        allow_from: Vec::new(),
        reserved_ports: Vec::new(),
        sources: vec!["127.0.0.6".parse().unwrap(), "::6".parse().unwrap()],
        instance_ip: "10.0.0.5".parse().unwrap(),
        envoy_version: EnvoyVersion::NEWEST,
        app_probers: Some("{}".to_owned()),
    }
}

fn rendered(bootstrap: &Bootstrap) -> Value {
    serde_json::from_str(&bootstrap.render()).unwrap()
}

#[test]
fn placeholders() {
    let values = BTreeMap::from([
        ("NUMBER", json!(7)),
        ("TEXT", json!("a\"b${NUMBER}")),
        ("OBJECT", json!({"a": [1]})),
        ("NULL", Value::Null),
    ]);
    for (template, expected) in [
        (json!("${NUMBER}"), json!(7)),
        (json!("${TEXT}"), json!("a\"b${NUMBER}")),
        (json!("${OBJECT}"), json!({"a": [1]})),
        (json!("x-${TEXT}-${NUMBER}"), json!("x-a\"b${NUMBER}-7")),
        (json!("${NUMBER}${NUMBER}"), json!("77")),
        (json!({"a": "${NULL}", "b": 1}), json!({"b": 1})),
        (json!(["${NULL}", 1]), json!([1])),
        (json!({"${NUMBER}": true}), json!({"${NUMBER}": true})),
        (json!("$NUMBER {NUMBER}"), json!("$NUMBER {NUMBER}")),
    ] {
        assert_eq!(fill(template.clone(), &values), Ok(expected), "{template}");
    }
    for (template, name) in [("${OTHER}", "OTHER"), ("a ${OTHER}", "OTHER"), ("${NUMBER", "NUMBER")] {
        assert_eq!(fill(json!([template]), &values), Err(UnknownPlaceholder(name.to_owned())), "{template}");
    }
}

#[test]
fn every_value_has_its_place_in_the_template() {
    for name in bootstrap().values().keys() {
        assert!(TEMPLATE.contains(&format!("\"${{{name}}}\"")), "{name}");
    }
    assert!(!bootstrap().render().contains("${"));
}

#[test]
fn the_same_value_gives_the_same_bytes_with_sorted_keys() {
    let text = bootstrap().render();
    assert_eq!(text, bootstrap().render());
    let top: Vec<&str> = text.lines().filter(|line| line.starts_with("  \"")).collect();
    assert!(top.is_sorted(), "{top:?}");
    let written: Value = serde_json::from_str(&text).unwrap();
    let mut sorted = written.clone();
    sorted.sort_all_objects();
    assert_eq!(written.to_string(), sorted.to_string());
}

#[test]
fn addresses_become_sockets() {
    for (address, first, additional) in [
        ("[::]:1", "0.0.0.0", Some("::")),
        ("0.0.0.0:1", "0.0.0.0", None),
        ("10.0.0.5:1", "10.0.0.5", None),
        ("[fd00::5]:1", "fd00::5", None),
    ] {
        let json = rendered(&Bootstrap { probe_address: address.parse().unwrap(), ..bootstrap() });
        let listener = &json["static_resources"]["listeners"][0];
        assert_eq!(listener["address"]["socket_address"]["address"], first, "{address}");
        let found = listener.pointer("/additional_addresses/0/address/socket_address/address");
        assert_eq!(found.and_then(Value::as_str), additional, "{address}");
    }
}

#[test]
fn optional_parts_are_gone_without_a_trace() {
    let json = rendered(&Bootstrap { stats_address: None, sources: Vec::new(), ..bootstrap() });
    let listeners = json["static_resources"]["listeners"].as_array().unwrap();
    assert_eq!(listeners.len(), 1);
    assert_eq!(listeners[0]["name"], "app_health");
    assert!(listeners[0]["filter_chains"][0].get("filter_chain_match").is_none());
    assert!(!json.to_string().contains("upstream_bind_config"));
}

#[test]
fn loopback_is_always_in_the_allow_list_and_nothing_twice() {
    let allow_from = ["10.0.0.0/8", "127.0.0.1", "10.0.0.0/8"].map(|block| block.parse().unwrap()).to_vec();
    let json = rendered(&Bootstrap { allow_from, ..bootstrap() });
    let found = &json["static_resources"]["listeners"][0]["filter_chains"][0]["filter_chain_match"];
    let expected = json!({"source_prefix_ranges": [
        {"address_prefix": "127.0.0.1", "prefix_len": 32},
        {"address_prefix": "::1", "prefix_len": 128},
        {"address_prefix": "10.0.0.0", "prefix_len": 8},
    ]});
    assert_eq!(found, &expected);
}

#[test]
fn every_probe_cluster_has_the_bind() {
    let json = rendered(&bootstrap());
    let clusters = json["static_resources"]["clusters"].as_array().unwrap();
    let bound: Vec<&str> = clusters
        .iter()
        .filter(|cluster| {
            cluster["upstream_bind_config"]
                == json!({
                    "source_address": {"address": "127.0.0.6", "port_value": 0},
                    "extra_source_addresses": [{"address": {"address": "::6", "port_value": 0}}],
                })
        })
        .map(|cluster| cluster["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        bound,
        [
            "app_health_http",
            "app_health_https",
            "app_health_tcp",
            "app_health_grpc",
            "app_health_grpc_tls",
            "app_health_callout_http",
            "app_health_callout_https"
        ]
    );
}

#[test]
fn the_admin_socket_is_for_its_owner() {
    let json = rendered(&bootstrap());
    assert_eq!(json["admin"]["address"], json!({"pipe": {"path": "/run/admin.sock", "mode": 384}}));
    let json = rendered(&Bootstrap { admin: "127.0.0.1:19000".parse().unwrap(), ..bootstrap() });
    let tcp = json!({"socket_address": {"address": "127.0.0.1", "port_value": 19000}});
    assert_eq!(json["admin"]["address"], tcp);
}

#[test]
fn the_filter_learns_of_moved_ports_and_reads_the_table_verbatim() {
    let table = r#"{"/app-health/app/livez": {"tcpSocket":{"port":1}}, "${NAME}": null}"#;
    let moved = Bootstrap {
        probe_address: "[::]:25020".parse().unwrap(),
        stats_address: Some("[::]:25090".parse().unwrap()),
        admin: "127.0.0.1:25000".parse().unwrap(),
        reserved_ports: vec![25021, 15021, 8443, 25021],
        app_probers: Some(table.to_owned()),
        ..bootstrap()
    };
    let expected = json!({"podIP": "10.0.0.5", "statusPort": 25020, "reservedPorts": [8443, 25000, 25021, 25090], "probers": table});
    assert_eq!(serde_json::from_str::<Value>(&moved.plugin_configuration()).unwrap(), expected);
    assert!(moved.render().contains("${NAME}"), "the table is not a template");

    let usual = Bootstrap { app_probers: None, ..bootstrap() };
    let expected = json!({"podIP": "10.0.0.5", "statusPort": 15020, "reservedPorts": []});
    assert_eq!(serde_json::from_str::<Value>(&usual.plugin_configuration()).unwrap(), expected);
}

#[test]
fn the_filter_can_be_inline() {
    let text = Bootstrap { filter: FilterCode::Inline(vec![0, 97, 115, 109]), ..bootstrap() }.render();
    assert!(text.contains(r#""inline_bytes": "AGFzbQ==""#), "{text}");
}

#[test]
fn the_allow_list_stands_where_each_envoy_reads_it() {
    let list = |version: &str, place: &str| {
        let json = rendered(&Bootstrap { envoy_version: version.parse().unwrap(), ..bootstrap() });
        let filters = "/static_resources/listeners/0/filter_chains/0/filters/1/typed_config/http_filters";
        let place = format!("{filters}/1/typed_config/config/{place}/allowed_capabilities");
        json.pointer(&place.replace("//", "/")).is_some_and(|list| list.get("proxy_log").is_some())
    };
    let (outside, inside) = ("capability_restriction_config", "vm_config/capability_restriction_config");
    for (version, is_outside) in [("1.36", true), ("1.39", true), ("1.40", false), ("1.41", false)] {
        assert_eq!((list(version, outside), list(version, inside)), (is_outside, !is_outside), "{version}");
    }
}

/// Checks the connect timeouts of routes and callouts that follow from a prober table.
#[test]
fn no_connection_outlives_its_probe_by_much() {
    let probe = |timeout: u32| {
        format!(
            r#""/app-health/a{timeout}/livez": {{"tcpSocket": {{"port": 80}}, "timeoutSeconds": {timeout}}}"#
        )
    };
    let hook = r#""/app-lifecycle/a/prestopz": {"httpGet": {"port": 80}}"#;
    for (table, by_route, by_callout) in [
        (String::new(), "1.1s", "1.1s"),
        (probe(0), "1.1s", "1.1s"),
        ([probe(3), probe(20)].join(","), "20.1s", "20.1s"),
        ([probe(3), hook.to_owned()].join(","), "30.1s", "3.1s"),
        ([probe(60), hook.to_owned()].join(","), "60.1s", "60.1s"),
    ] {
        let json = rendered(&Bootstrap { app_probers: Some(format!("{{{table}}}")), ..bootstrap() });
        let clusters = json["static_resources"]["clusters"].as_array().unwrap();
        let timeout = |name: &str| {
            clusters.iter().find(|cluster| cluster["name"] == name).unwrap()["connect_timeout"].clone()
        };
        assert_eq!(
            (timeout("app_health_tcp"), timeout("app_health_grpc")),
            (by_route.into(), by_callout.into())
        );
    }
}
