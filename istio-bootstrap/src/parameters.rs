//! What a bootstrap template refers to: `.nodeID`, `.config.StatusPort`, `.inclusionPrefix` and so on.

mod addresses;
mod stats;
mod tls;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

use crate::node::{Node, Sources, without_duplicates};
use crate::proxy_config::ProxyConfig;
use crate::template::Template;
use probe::go::parse_bool;

/// The default of Envoy's limit of connections: no limit.
const CONNECTIONS: i64 = i32::MAX as i64;

/// Why a bootstrap cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unrendered {
    /// An address in this field is not `HOST:PORT`.
    Address {
        field: &'static str,
        value: String,
    },
    /// Only Istio's agent can provide this.
    Unsupported(&'static str),
    Template(crate::template::Error),
}

impl fmt::Display for Unrendered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { field, value } => write!(out, "{field} is {value:?}, which is not HOST:PORT"),
            Self::Unsupported(field) => write!(out, "{field} is not supported"),
            Self::Template(error) => write!(out, "the bootstrap template: {error}"),
        }
    }
}

impl std::error::Error for Unrendered {}

/// Renders the bootstrap of an Envoy from the text of a template.
///
/// # Errors
/// The first thing that prevents it.
pub fn bootstrap(
    template: &str,
    sources: &Sources,
    config: &ProxyConfig,
    node: &Node,
) -> Result<String, Unrendered> {
    let parameters = parameters(sources, config, node)?;
    let rendered = Template::parse(template).and_then(|template| template.render(&parameters));
    rendered.map_err(Unrendered::Template)
}

fn parameters(sources: &Sources, config: &ProxyConfig, node: &Node) -> Result<Value, Unrendered> {
    let mut out = Map::new();
    let mut set = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
    let discovery = config.text("discoveryAddress");
    let uses_delta = sources.variable("ISTIO_DELTA_XDS").and_then(parse_bool).unwrap_or(true);
    set("nodeID", node.id.as_str().into());
    set("nodeType", node.id.split('~').next().unwrap_or_default().into());
    set("cluster", cluster(config, node).into());
    set("config", config.go_fields());
    set("xds_type", if uses_delta { "DELTA_GRPC" } else { "GRPC" }.into());
    set("metadata_discovery", (node.discovers_metadata && uses_delta).into());
    set("discovery_host", discovery.split(':').next().unwrap_or_default().into());
    set("discovery_address", discovery.into());
    set("xds_root_cert", sources.variable("XDS_ROOT_CA").unwrap_or_default().into());
    set("meta_json_str", Value::from(node.metadata.clone()).to_string().into());
    set("runtime_flags", runtime_flags(sources, config).to_string().into());
    set("log_json", sources.log_as_json.into());
    set("workload_identity_socket_file", node.text("WORKLOAD_IDENTITY_SOCKET_FILE").into());
    for (name, field) in
        [("envoy_status_port", "ENVOY_STATUS_PORT"), ("envoy_prometheus_port", "ENVOY_PROMETHEUS_PORT")]
    {
        set(name, node.metadata.get(field).cloned().unwrap_or_else(|| 0.into()));
    }
    let is_local =
        config.texts("proxyMetadata").any(|entry| entry == ("METRICS_LOCALHOST_ACCESS_ONLY", "true"));
    set("metrics_localhost_access_only", is_local.into());
    set("global_downstream_max_connections", connections(config).into());
    for (name, field) in [
        ("secure_metrics_port", "ENVOY_SECURE_METRICS_PORT"),
        ("secure_merged_metrics_port", "ENVOY_SECURE_MERGED_METRICS_PORT"),
        ("outlier_log_path", "OUTLIER_LOG_PATH"),
    ] {
        if let Some(value) = node.metadata.get(field) {
            set(name, value.clone());
        }
    }
    for (name, value) in ["region", "zone", "sub_zone"].iter().zip(&node.locality) {
        if !value.is_empty() {
            set(name, value.as_str().into());
        }
    }
    if let Some(Value::String(text)) = node.metadata.get("LOAD_STATS_CONFIG_JSON") {
        set("load_stats_config_json_str", text.as_str().into());
    }
    if node.text("ENABLE_SELF_DISCOVERY") == "true" {
        set("enable_self_discovery", true.into());
    }
    let accepts_proxy_protocol =
        sources.variable("ENVOY_STATUS_PORT_ENABLE_PROXY_PROTOCOL").and_then(parse_bool);
    if accepts_proxy_protocol == Some(true) {
        set("envoy_status_port_enable_proxy_protocol", true.into());
    }
    if sources.only_file_credentials {
        set("custom_file_path", "./var/run/secrets/credential-uds/files-socket".into());
    }
    set_families(sources, &mut set);
    stats::set(config, node, &sources.addresses, &mut set);
    addresses::set(sources, config, node, &mut set)?;
    Ok(out.into())
}

/// The families of the Pod's addresses, which decide where Envoy listens.
struct Families {
    /// The loopback address, and that of all interfaces.
    own: [IpAddr; 2],
    /// Those of the other family.
    second: Option<[IpAddr; 2]>,
    lookup: &'static str,
}

fn families(sources: &Sources) -> Families {
    const V4: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    const V6: [IpAddr; 2] = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let is_v6 = |address: &String| address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
    let addresses = without_duplicates(&sources.addresses);
    let has_v6_only = !addresses.is_empty() && addresses.iter().all(is_v6);
    let has_v4_only = !addresses.iter().any(is_v6);
    let is_dual = sources.variable("ISTIO_DUAL_STACK").and_then(parse_bool).unwrap_or(false);
    let starts_with_v6 = addresses.first().is_some_and(is_v6);
    match (has_v4_only, has_v6_only) {
        (true, _) => Families { own: V4, second: None, lookup: "V4_ONLY" },
        (_, true) => Families { own: V6, second: None, lookup: "V6_ONLY" },
        _ if is_dual && starts_with_v6 => Families { own: V6, second: Some(V4), lookup: "ALL" },
        _ if is_dual => Families { own: V4, second: Some(V6), lookup: "ALL" },
        _ => Families { own: V4, second: None, lookup: "V4_ONLY" },
    }
}

/// The loopback address on which Envoy's admin interface listens.
pub fn localhost(sources: &Sources) -> IpAddr {
    let [localhost, _] = families(sources).own;
    localhost
}

fn set_families(sources: &Sources, set: &mut impl FnMut(&str, Value)) {
    let Families { own: [localhost, wildcard], second, lookup } = families(sources);
    if let Some([localhost, wildcard]) = second {
        set("additional_localhost", localhost.to_string().into());
        set("additional_wildcard", wildcard.to_string().into());
        set("dual_stack", true.into());
    }
    set("localhost", localhost.to_string().into());
    set("wildcard", wildcard.to_string().into());
    set("dns_lookup_family", lookup.into());
}

/// The runtime flags of Istio's Envoy, over which `runtimeValues` are laid.
fn runtime_flags(sources: &Sources, config: &ProxyConfig) -> Value {
    let mut flags = json!({
        "re2.max_program_size.error_level": "32768",
        "envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst": true,
        "envoy.reloadable_features.http_reject_path_with_fragment": false,
        "envoy.reloadable_features.fixed_heap_use_allocated": true,
        "envoy.reloadable_features.coalesce_lb_rebuilds_on_batch_update": false,
    });
    let Some(map) = flags.as_object_mut() else { return flags };
    let strips = sources.variable("HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED").and_then(parse_bool);
    if strips == Some(false) {
        let name = "envoy.reloadable_features.http_strip_fragment_from_path_unsafe_if_disabled";
        map.insert(name.to_owned(), "false".into());
    }
    for (name, value) in config.texts("runtimeValues") {
        match value {
            "" => drop(map.remove(name)),
            "true" | "false" => drop(map.insert(name.to_owned(), (value == "true").into())),
            value => drop(map.insert(name.to_owned(), value.into())),
        }
    }
    flags
}

fn connections(config: &ProxyConfig) -> i64 {
    let number = |map: &str, name: &str| {
        config.texts(map).find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<i64>().ok())
    };
    number("proxyMetadata", "ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS")
        .or_else(|| number("runtimeValues", "overload.global_downstream_max_connections"))
        .unwrap_or(CONNECTIONS)
}

/// The name of the service, which traces and metrics show.
fn cluster(config: &ProxyConfig, node: &Node) -> String {
    let label = |names: [&str; 3]| names.iter().find_map(|name| node.labels.get(*name)).map(String::as_str);
    let (app, name, canonical) = ("app", "app.kubernetes.io/name", "service.istio.io/canonical-name");
    let (workload, namespace) = (node.text("WORKLOAD_NAME"), node.text("NAMESPACE"));
    let or_default = |chosen: &str| match (chosen, label([app, name, canonical])) {
        ("" | "istio-proxy", Some(app)) => format!("{app}.{namespace}"),
        ("" | "istio-proxy", None) if !workload.is_empty() => format!("{workload}.{namespace}"),
        ("" | "istio-proxy", None) if !namespace.is_empty() => format!("istio-proxy.{namespace}"),
        ("" | "istio-proxy", None) => "istio-proxy".to_owned(),
        (chosen, _) => chosen.to_owned(),
    };
    let canonical_name = || {
        let workload = if workload.is_empty() { "istio-proxy" } else { workload };
        label([canonical, name, app]).unwrap_or(workload)
    };
    match (config.text("serviceCluster"), config.text("tracingServiceName")) {
        (_, "CANONICAL_NAME_ONLY") => or_default(canonical_name()),
        (_, "CANONICAL_NAME_AND_NAMESPACE") if !namespace.is_empty() => {
            format!("{}.{namespace}", canonical_name())
        }
        (_, "CANONICAL_NAME_AND_NAMESPACE") => or_default(canonical_name()),
        (service, _) => or_default(service),
    }
}
