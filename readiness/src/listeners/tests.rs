use serde_json::json;

use super::*;

const HTTP: &str = "http_connection_manager.v3.HttpConnectionManager";
const TCP: &str = "tcp_proxy.v3.TcpProxy";
const REDIS: &str = "redis_proxy.v3.RedisProxy";

fn chain(filter: &str) -> Value {
    json!({"filters": [
        {"name": "first", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC"}},
        {"name": "last", "typed_config": {"@type": format!("type.googleapis.com/envoy.extensions.filters.network.{filter}")}},
    ]})
}

/// Returns a listener as `/config_dump` shows it; `fields` are added.
fn raw(name: &str, port: u16, direction: &str, filter: &str, fields: &Value) -> Value {
    let mut listener = json!({
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        "name": name,
        "address": {"socket_address": {"address": "0.0.0.0", "port_value": port}},
        "filter_chains": [chain(filter)],
    });
    let object = listener.as_object_mut().unwrap();
    if !direction.is_empty() {
        object.insert("traffic_direction".to_owned(), json!(direction));
    }
    object.extend(fields.as_object().unwrap().clone());
    listener
}

fn found(listeners: &[Value]) -> Vec<Listener> {
    let configs: Vec<_> = listeners.iter().map(|listener| json!({"listener": listener})).collect();
    parse([&json!({"configs": configs}).to_string(), "{}"]).unwrap()
}

fn plain(name: &str, port: u16, direction: &str, filter: &str) -> Value {
    raw(name, port, direction, filter, &json!({}))
}

fn active(name: &str, value: u64) -> String {
    format!("listener.{name}.downstream_cx_active: {value}\n")
}

/// Each row has listeners, the expected path for the scope `inbound`, and the expected number of
/// connections if each listener on the ports 1 to 4 has 1, 10, 100 and 1000 of them.
#[test]
fn what_a_drain_of_inbound_listeners_reaches_and_waits_for() {
    let stats = active("0.0.0.0_1", 1) + &active("0.0.0.0_2", 10) + &active("0.0.0.0_3", 100);
    let stats = stats + &active("0.0.0.0_4", 1000) + &active("app_health", 5);
    for (listeners, path, connections) in [
        (vec![plain("in", 1, "INBOUND", HTTP)], DRAIN_INBOUND, 1111),
        (vec![plain("in", 1, "INBOUND", HTTP), plain("out", 2, "OUTBOUND", HTTP)], DRAIN_INBOUND, 1101),
        (vec![plain("out", 2, "OUTBOUND", TCP)], DRAIN_INBOUND, 1101),
        (vec![plain("none", 1, "", HTTP)], DRAIN_ALL, 1111),
        (vec![plain("none", 1, "UNSPECIFIED", HTTP), plain("out", 3, "OUTBOUND", HTTP)], DRAIN_ALL, 1011),
        (vec![plain("in", 1, "INBOUND", TCP)], DRAIN_INBOUND, 1111),
        // No drain reaches the listener.
        (vec![plain("none", 1, "", TCP), plain("out", 2, "OUTBOUND", HTTP)], DRAIN_INBOUND, 1101),
        (vec![plain("none", 1, "", REDIS), plain("out", 2, "OUTBOUND", HTTP)], DRAIN_ALL, 1101),
        (vec![raw("both", 1, "", TCP, &json!({"default_filter_chain": chain(HTTP)}))], DRAIN_ALL, 1111),
        (vec![raw("over xDS", 1, "", TCP, &json!({"filter_chains": []}))], DRAIN_ALL, 1111),
        (vec![plain("in", 1, "INBOUND", REDIS), plain("out", 2, "OUTBOUND", REDIS)], DRAIN_ALL, 1101),
        // Nothing but the agent's own listener, which has no direction.
        (
            vec![raw("app_health", 15020, "", HTTP, &json!({"stat_prefix": "app_health"}))],
            DRAIN_INBOUND,
            1111,
        ),
        (vec![], DRAIN_INBOUND, 1111),
    ] {
        let plan = DrainPlan::new(DrainScope::Inbound, Some(&found(&listeners)));
        assert_eq!((plan.path, plan.open_connections(&stats)), (path, Some(connections)), "{listeners:?}");
    }
}

/// The listeners for readiness and metrics in Istio's bootstrap have no direction, and are asked until the end.
#[test]
fn a_drain_of_a_sidecar_reaches_inbound_listeners_only() {
    let listeners = [
        plain("virtualInbound", 1, "INBOUND", HTTP),
        plain("virtualOutbound", 2, "OUTBOUND", TCP),
        plain("0.0.0.0_15021", 3, "", HTTP),
        plain("0.0.0.0_15090", 4, "", HTTP),
    ];
    let plan = DrainPlan::new(DrainScope::Sidecar, Some(&found(&listeners)));
    assert_eq!(plan.path, DRAIN_INBOUND);
    let stats = active("0.0.0.0_1", 1) + &active("0.0.0.0_2", 10) + &active("0.0.0.0_3", 100);
    assert_eq!(plan.open_connections(&(stats + &active("0.0.0.0_4", 1000))), Some(1));
    assert_eq!(DrainPlan::new(DrainScope::Sidecar, None).path, DRAIN_INBOUND);
    assert_eq!(warnings(DrainScope::Sidecar, &found(&listeners)), Vec::<String>::new());
}

#[test]
fn a_drain_of_all_listeners_waits_for_all() {
    let listeners = found(&[plain("in", 1, "INBOUND", HTTP), plain("out", 2, "OUTBOUND", HTTP)]);
    let stats = active("0.0.0.0_1", 1) + &active("0.0.0.0_2", 10);
    for plan in [DrainPlan::new(DrainScope::All, Some(&listeners)), DrainPlan::new(DrainScope::Inbound, None)]
    {
        assert_eq!((plan.path, plan.open_connections(&stats)), (DRAIN_ALL, Some(11)));
    }
}

/// Each row has fields of an outbound listener and its name in Envoy's statistics.
#[test]
fn names_in_statistics() {
    let address = |address: &str, port| json!({"address": {"socket_address": {"address": address, "port_value": port}}});
    for (fields, name) in [
        (address("127.0.0.9", 80), "127.0.0.9_80"),
        (address("::", 8080), "[__]_8080"),
        (address("2001:DB8:0:0::1", 1), "[2001_db8__1]_1"),
        (json!({"address": {"pipe": {"path": "/run/x.sock"}}}), "/run/x.sock"),
        (json!({"stat_prefix": "http://out:1"}), "http_out_1"),
        (json!({"address": {}, "internal_listener": {}}), "envoy_internal_out"),
    ] {
        let plan =
            DrainPlan::new(DrainScope::Inbound, Some(&found(&[raw("out", 1, "OUTBOUND", HTTP, &fields)])));
        assert_eq!(plan.open_connections(&active(name, 7)), Some(0), "{name}");
    }
    // The port is not known, so the connections count.
    let plan = DrainPlan::new(
        DrainScope::Inbound,
        Some(&found(&[raw("out", 1, "OUTBOUND", HTTP, &address("127.0.0.9", 0))])),
    );
    assert_eq!(plan.open_connections(&active("127.0.0.9_41234", 7)), Some(7));
}

#[test]
fn a_name_that_listeners_share_counts() {
    let shared = json!({"stat_prefix": "edge"});
    let listeners =
        found(&[raw("out", 1, "OUTBOUND", HTTP, &shared), raw("in", 2, "INBOUND", HTTP, &shared)]);
    let plan = DrainPlan::new(DrainScope::Inbound, Some(&listeners));
    assert_eq!(plan.open_connections(&active("edge", 3)), Some(3));
}

#[test]
fn dynamic_listeners() {
    let state = |listener: Value| json!({"version_info": "1", "listener": listener});
    let dynamic = json!({"configs": [
        {"name": "a", "active_state": state(plain("a", 1, "", HTTP))},
        {"name": "b", "draining_state": state(plain("b", 2, "OUTBOUND", TCP))},
        {"name": "c", "warming_state": state(plain("c", 3, "", TCP))},
        {"name": "d", "error_state": {"details": "rejected"}},
    ]});
    let listeners = parse(["{}", &dynamic.to_string()]).unwrap();
    let names: Vec<_> = listeners.iter().map(|listener| listener.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    for garbage in ["", "true", "not found\n", r#"{"configs": 1}"#] {
        assert_eq!(parse(["{}", garbage]), None, "{garbage}");
    }
}

/// Each row has the scope, listeners, and words that the warnings have in this order.
#[test]
fn warnings_name_listeners() {
    let (inbound, all) = (DrainScope::Inbound, DrainScope::All);
    for (scope, listeners, words) in [
        (inbound, vec![plain("in", 1, "INBOUND", HTTP), plain("out", 2, "OUTBOUND", TCP)], vec![]),
        (inbound, vec![plain("free", 1, "", HTTP)], vec![]),
        (
            inbound,
            vec![plain("free", 1, "", HTTP), plain("out", 2, "OUTBOUND", HTTP)],
            vec!["traffic_direction: free;"],
        ),
        (inbound, vec![plain("db", 1, "INBOUND", TCP), plain("mq", 2, "", TCP)], vec!["not HTTP: db, mq;"]),
        // The direction of the others changes nothing.
        (
            inbound,
            vec![plain("db", 1, "", TCP), plain("cache", 3, "", REDIS), plain("out", 2, "OUTBOUND", HTTP)],
            vec!["not HTTP: db;"],
        ),
        (all, vec![plain("out", 2, "OUTBOUND", TCP), plain("free", 1, "", REDIS)], vec!["not HTTP: out;"]),
    ] {
        let found = warnings(scope, &found(&listeners));
        assert_eq!(found.len(), words.len(), "{listeners:?}: {found:?}");
        assert!(found.iter().zip(words).all(|(line, word)| line.contains(word)), "{found:?}");
    }
}

#[test]
fn statistics_of_connections() {
    let own = active("admin", 1)
        + &active("admin.main_thread", 1)
        + &active("app_health", 7)
        + &active("app_health.worker_0", 7)
        + &active("app_health_stats", 2)
        + &active("envoy_internal_inner", 3);
    let plan = DrainPlan::new(DrainScope::All, None);
    for (body, expected) in [
        (String::new(), None),
        ("garbage".to_owned(), None),
        ("listener.x.downstream_cx_active: many\n".to_owned(), None),
        (own.clone(), Some(0)),
        (format!("{own}{}{}", active("0.0.0.0_8080", 4), active("0.0.0.0_8080.worker_1", 4)), Some(4)),
        (format!("{}{}", active("[__]_8080", 1), active("app_health_of_mine", 2)), Some(3)),
    ] {
        assert_eq!(plan.open_connections(&body), expected, "{body}");
    }
}
