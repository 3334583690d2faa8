use super::template::UnknownPlaceholder;
use super::*;
use crate::envoy_version::EnvoyVersion;

fn bootstrap() -> Bootstrap {
    Bootstrap {
        probe_address: "[::]:15020".parse().unwrap(),
        stats_address: Some("[::]:15090".parse().unwrap()),
        local_address: "127.0.0.1:15004".parse().unwrap(),
        admin: "unix:/run/admin.sock".parse().unwrap(),
        filter: Some(FilterCode::File("/run/filter.wasm".into())),
        allow_from: Vec::new(),
        node: Vec::new(),
        hook_callers: None,
        reserved_ports: Vec::new(),
        reuse_connections: false,
        sources: vec!["127.0.0.6".parse().unwrap(), "::6".parse().unwrap()],
        instance_ip: "10.0.0.5".parse().unwrap(),
        envoy_version: EnvoyVersion::NEWEST,
        app_probers: Some("{}".to_owned()),
        xds: None,
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
fn absent_optional_parts_are_removed() {
    let json = rendered(&Bootstrap { stats_address: None, sources: Vec::new(), ..bootstrap() });
    let listeners = json["static_resources"]["listeners"].as_array().unwrap();
    assert_eq!(listeners.len(), 1);
    assert_eq!(listeners[0]["name"], "app_health");
    assert!(listeners[0]["filter_chains"][0].get("filter_chain_match").is_none());
    assert!(!json.to_string().contains("upstream_bind_config"));
}

#[test]
fn the_node_has_a_filter_chain_of_its_own() {
    let chains = |node: &[&str], filter: FilterCode| {
        let node = node.iter().map(|address| address.parse().unwrap()).collect();
        let json = rendered(&Bootstrap { node, filter: Some(filter), ..bootstrap() });
        json["static_resources"]["listeners"][0]["filter_chains"].as_array().unwrap().clone()
    };
    for filter in [FilterCode::File("/run/filter.wasm".into()), FilterCode::Module("/run/filter.so".into())] {
        let mut single = chains(&[], filter.clone());
        let [general] = &mut single[..] else { panic!("one chain") };
        let [others, node] = &chains(&["192.0.2.1"], filter)[..] else { panic!("two chains") };
        // Only without this chain must the general one admit kubelet among many idle clients.
        general["filters"][0]["typed_config"]["max_connections"] = json!(384);
        assert_eq!(others, general);
        let match_of_node = json!({"source_prefix_ranges": [
            {"address_prefix": "127.0.0.1", "prefix_len": 32},
            {"address_prefix": "::1", "prefix_len": 128},
            {"address_prefix": "192.0.2.1", "prefix_len": 32},
        ]});
        assert_eq!(node["filter_chain_match"], match_of_node);
        let limit = &node["filters"][0]["typed_config"];
        let values = (&limit["stat_prefix"], &limit["max_connections"]);
        assert_eq!(values, (&json!("app_health_node"), &json!(1024)));
        // All else is equal, but for the root context of the wasm form.
        let manager = node["filters"][1].to_string();
        assert_eq!(
            manager.replace("\"app_health_node\"", "\"app_health\""),
            general["filters"][1].to_string()
        );
    }
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
fn connections_are_reused_only_if_wanted() {
    assert!(!bootstrap().render().contains("reuse"));
    let reuse = Bootstrap { reuse_connections: true, ..bootstrap() };
    let plugin: Value = serde_json::from_str(&reuse.plugin_configuration()).unwrap();
    assert_eq!(plugin["reuseConnections"], json!(true));
    let (new, reuse) = (rendered(&bootstrap()), rendered(&reuse));
    let count =
        |bootstrap: &Value, pointer: &str| bootstrap.pointer(pointer).unwrap().as_array().unwrap().len();
    let clusters = "/static_resources/clusters";
    assert_eq!(count(&reuse, clusters), count(&new, clusters) + 4);
    let routes = "/static_resources/listeners/0/filter_chains/0/filters/1/typed_config/route_config/virtual_hosts/0/routes";
    assert_eq!(count(&reuse, routes), count(&new, routes) + 4);
}

#[test]
fn all_resources_are_static_without_the_xds_socket() {
    let json = rendered(&bootstrap());
    assert!(json.get("node").is_none() && json.get("dynamic_resources").is_none(), "{json:#}");
    assert!(!json.to_string().contains("-grpc\""), "{json:#}");
}

#[test]
fn envoy_gets_clusters_and_listeners_from_the_xds_socket() {
    for (is_delta, api_type) in [(false, "GRPC"), (true, "DELTA_GRPC")] {
        let xds = XdsSocket {
            path: "/run/xds.sock".into(),
            is_delta,
            node_id: "sidecar~10.0.0.5~vm1.shop~shop.svc.cluster.local".to_owned(),
        };
        let mut json = rendered(&Bootstrap { xds: Some(xds), ..bootstrap() });
        let node = json!({"id": "sidecar~10.0.0.5~vm1.shop~shop.svc.cluster.local", "cluster": "app-health"});
        assert_eq!(json["node"], node);
        let dynamic = json!({
            "ads_config": {
                "api_type": api_type,
                "transport_api_version": "V3",
                "set_node_on_first_message_only": true,
                "grpc_services": [{"envoy_grpc": {
                    "cluster_name": "xds-grpc",
                    "retry_policy": {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}},
                }}],
            },
            "cds_config": {"ads": {}, "resource_api_version": "V3"},
            "lds_config": {"ads": {}, "resource_api_version": "V3"},
        });
        assert_eq!(json["dynamic_resources"], dynamic);
        let options = json!({"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {}},
        }});
        let clusters = json["static_resources"]["clusters"].as_array_mut().unwrap();
        for name in ["xds-grpc", "sds-grpc"] {
            let position = clusters.iter().position(|cluster| cluster["name"] == name).unwrap();
            let endpoint = json!({"endpoint": {"address": {"pipe": {"path": "/run/xds.sock"}}}});
            let cluster = json!({
                "name": name,
                "type": "STATIC",
                "connect_timeout": "1s",
                "typed_extension_protocol_options": options,
                "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
            });
            assert_eq!(clusters.remove(position), cluster);
        }
        // All else is that of a static bootstrap, for example the probe listener.
        let fields = json.as_object_mut().unwrap();
        fields.remove("node");
        fields.remove("dynamic_resources");
        assert_eq!(json, rendered(&bootstrap()));
    }
}

#[test]
fn the_filter_can_be_inline() {
    let text = Bootstrap { filter: Some(FilterCode::Inline(vec![0, 97, 115, 109])), ..bootstrap() }.render();
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
