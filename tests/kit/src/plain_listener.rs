//! A bootstrap with a second listener: a plain Envoy route to the same application, as a baseline.
//!
//! Everything that the shipped listener and its cluster set is copied unmodified: connection limit,
//! timeouts, header mutations in both directions, path and header rules, the router, the source
//! address, the circuit breakers, one connection per request. There are three differences: no rate
//! limit and no filter; one route, which selects the cluster by the path alone; and a STATIC
//! cluster, because the filter sets the target of ORIGINAL_DST.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use serde_json::{Value, json};

/// The name of the listener, of its route and of its cluster.
const NAME: &str = "plain";
/// The names of the two forms of the filter.
const FILTERS: [&str; 2] = ["envoy.filters.http.wasm", "envoy.filters.http.dynamic_modules"];
const RATE_LIMIT: &str = "envoy.filters.http.local_ratelimit";

/// Returns the listener of that name in a rendered bootstrap.
///
/// # Panics
/// If there is none.
pub fn listener<'a>(bootstrap: &'a mut Value, name: &str) -> &'a mut Value {
    named(&mut bootstrap["static_resources"]["listeners"], name)
}

/// Returns the HTTP filters of a listener.
///
/// # Panics
/// If it has no HTTP connection manager.
pub fn http_filters(listener: &mut Value) -> &mut Vec<Value> {
    connection_manager(listener)["http_filters"].as_array_mut().expect("a list of HTTP filters")
}

fn is_filter(http_filter: &Value) -> bool {
    FILTERS.iter().any(|name| http_filter["name"] == *name)
}

/// Sets the configuration of the filter in a listener.
///
/// # Panics
/// If the listener has no filter.
pub fn set_configuration(listener: &mut Value, configuration: &Value) {
    let filter = http_filters(listener).iter_mut().find(|filter| is_filter(filter)).expect("the filter");
    let typed = &mut filter["typed_config"];
    let place = if typed["config"].is_object() {
        &mut typed["config"]["configuration"]["value"]
    } else {
        &mut typed["filter_config"]["value"]
    };
    *place = configuration.to_string().into();
}

fn connection_manager(listener: &mut Value) -> &mut Value {
    let filters = &mut listener["filter_chains"][0]["filters"];
    &mut named(filters, "envoy.filters.network.http_connection_manager")["typed_config"]
}

fn named<'a>(list: &'a mut Value, name: &str) -> &'a mut Value {
    let elements = list.as_array_mut().expect("a list");
    elements.iter_mut().find(|element| element["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Raises the rate limit of the probe listener so far that it is never reached; requests are still
/// counted.
pub fn raise_rate_limit(bootstrap: &mut Value) {
    let filters = http_filters(listener(bootstrap, "app_health"));
    let limit = filters.iter_mut().find(|filter| filter["name"] == RATE_LIMIT).expect("a rate limit");
    let bucket = json!({"max_tokens": 1_000_000, "tokens_per_fill": 1_000_000, "fill_interval": "0.1s"});
    limit["typed_config"]["token_bucket"] = bucket.clone();
    limit["typed_config"]["descriptors"][0]["token_bucket"] = bucket;
}

/// Renders a bootstrap for a benchmark: with the filter in this form, whose rate limit is never reached, or for
/// `None` with the plain listener at `address` in place of the probe listener.
///
/// # Panics
/// If the bootstrap has no probe listener.
pub fn render(shipped: Bootstrap, filter: Option<FilterCode>, address: SocketAddr, app: SocketAddr) -> Value {
    let is_plain = filter.is_none();
    let filter = filter.or_else(|| shipped.filter.clone());
    let shipped = Bootstrap { instance_ip: app.ip(), filter, ..shipped };
    let mut bootstrap = serde_json::from_str(&shipped.render()).expect("a bootstrap is JSON");
    raise_rate_limit(&mut bootstrap);
    if is_plain {
        add(&mut bootstrap, address, app);
        without_probe_listener(&mut bootstrap);
    }
    bootstrap
}

/// Adds the plain listener at `address`, with a route to `app`.
pub fn add(bootstrap: &mut Value, address: SocketAddr, app: SocketAddr) {
    add_as(bootstrap, NAME, address, app, &[]);
}

/// Like [`add`], under another name and with these HTTP filters before the router.
pub fn add_as(bootstrap: &mut Value, name: &str, address: SocketAddr, app: SocketAddr, filters: &[Value]) {
    let mut plain = listener(bootstrap, "app_health").clone();
    plain["name"] = name.into();
    plain["stat_prefix"] = name.into();
    plain["address"] = socket_address(address);
    let manager = connection_manager(&mut plain);
    manager["stat_prefix"] = name.into();
    manager["route_config"] = json!({"name": name, "virtual_hosts": [{
        "name": name,
        "domains": ["*"],
        "routes": [{
            "match": {"prefix": "/"},
            "route": {"cluster": name, "timeout": "1s"},
            "request_headers_to_remove": ["x-app-health-kind", "x-forwarded-proto"],
        }],
    }]});
    let shipped = http_filters(&mut plain);
    shipped.retain(|filter| !is_filter(filter) && filter["name"] != RATE_LIMIT);
    for (place, filter) in filters.iter().enumerate() {
        shipped.insert(place, filter.clone());
    }
    push(bootstrap, "listeners", plain);
    let clusters = &mut bootstrap["static_resources"]["clusters"];
    let mut cluster = named(clusters, "app_health_http").clone();
    let fields = cluster.as_object_mut().expect("a cluster is an object");
    fields.remove("cleanup_interval");
    fields.insert("name".into(), name.into());
    fields.insert("type".into(), "STATIC".into());
    fields.insert("lb_policy".into(), "ROUND_ROBIN".into());
    let endpoint = json!({"endpoint": {"address": socket_address(app)}});
    let assignment = json!({"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]});
    fields.insert("load_assignment".into(), assignment);
    push(bootstrap, "clusters", cluster);
}

/// Changes the timeout of the route, which is Kubernetes' default for probes.
pub fn set_timeout(bootstrap: &mut Value, timeout: Duration) {
    let routes =
        &mut connection_manager(listener(bootstrap, NAME))["route_config"]["virtual_hosts"][0]["routes"];
    routes[0]["route"]["timeout"] = format!("{}s", timeout.as_secs()).into();
}

/// Removes the probe listener and with it the filter.
pub fn without_probe_listener(bootstrap: &mut Value) {
    let listeners = bootstrap["static_resources"]["listeners"].as_array_mut().expect("a list of listeners");
    listeners.retain(|listener| listener["name"] != "app_health");
}

fn push(bootstrap: &mut Value, list: &str, element: Value) {
    bootstrap["static_resources"][list].as_array_mut().expect("a list").push(element);
}

fn socket_address(address: SocketAddr) -> Value {
    json!({"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}})
}
