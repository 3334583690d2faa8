//! Renders the Envoy bootstrap by filling values into the template `envoy-config/bootstrap.yaml`,
//! which the build script converts to JSON.

mod filter_chains;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use probe::PluginConfig;
use serde_json::{Value, json};

use crate::envoy_version::EnvoyVersion;
use address::{Cidr, LocalAddress};
use filter_chains::Clients;
use template::fill;

/// The template `envoy-config/bootstrap.yaml`, converted to JSON by the build script.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/bootstrap.json"));

/// Default `timeoutSeconds` of a kubelet probe.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Connect timeout for lifecycle hooks, for which kubelet sets no timeout.
const HOOK_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Margin by which Envoy's connect timeout exceeds the longest probe timeout.
const AFTER_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// Address of the probe listener; `[::]` becomes two sockets, 0.0.0.0 and `::`. The port is not
    /// 0.
    pub probe_address: SocketAddr,
    /// Address of the stats listener, treated like `probe_address`; `None` disables the listener.
    pub stats_address: Option<SocketAddr>,
    /// Address of the agent, which the metrics route targets.
    pub local_address: LocalAddress,
    pub admin: LocalAddress,
    /// `None` if the agent answers probes itself, so that Envoy has no listener for them.
    pub filter: Option<FilterCode>,
    /// Sources that may call the probe listener besides loopback; if empty, all sources are
    /// allowed.
    pub allow_from: Vec<Cidr>,
    /// The node's addresses, whose clients have separate connections on the probe listener; empty
    /// if unknown.
    pub node: Vec<IpAddr>,
    /// Clients that may call lifecycle hooks besides loopback; `None` means all that may connect.
    pub hook_callers: Option<Vec<IpAddr>>,
    /// Additional ports of the proxy that no probe may target; none is 0.
    pub reserved_ports: Vec<u16>,
    /// Whether probes use a connection to the application again, which kubelet never does.
    pub reuse_connections: bool,
    /// Source addresses of probes, at most one per address family; if empty, the kernel chooses.
    pub sources: Vec<IpAddr>,
    pub instance_ip: IpAddr,
    pub envoy_version: EnvoyVersion,
    pub app_probers: Option<String>,
    /// The agent's xDS socket; `None` if all resources are static.
    pub xds: Option<XdsSocket>,
}

/// The Unix socket on which the agent serves xDS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdsSocket {
    pub path: PathBuf,
    /// True for the incremental variant of the protocol.
    pub is_delta: bool,
    pub node_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterCode {
    /// Absolute path of the Wasm file.
    File(PathBuf),
    Inline(Vec<u8>),
    /// Absolute path of the dynamic module.
    Module(PathBuf),
}

/// Names of the two forms of the filter in Envoy's configuration.
const WASM: &str = "envoy.filters.http.wasm";
const NATIVE: &str = "envoy.filters.http.dynamic_modules";
/// The header by which the native form passes a declared `x-forwarded-for` to the clusters of callouts.
const FORWARDED_FOR: &str = "x-app-health-forwarded-for";

impl Bootstrap {
    /// Returns the filter's configuration as JSON with sorted keys:
    /// `{"hookCallers":[…],"podIP":…,"probers":…,"reservedPorts":[…],"reuseConnections":true,
    /// "statusPort":…}`. The prober table stays the string that was given, so that error messages refer
    /// to that string.
    pub fn plugin_configuration(&self) -> String {
        let mut configuration = json!({
            "podIP": self.instance_ip.to_string(),
            "statusPort": self.probe_address.port(),
            "reservedPorts": self.reserved(),
        });
        if let Some(callers) = &self.hook_callers {
            configuration["hookCallers"] = callers.iter().map(IpAddr::to_string).collect();
        }
        if self.reuse_connections {
            configuration["reuseConnections"] = true.into();
        }
        if let Some(table) = &self.app_probers {
            configuration["probers"] = table.as_str().into();
        }
        configuration.to_string()
    }

    /// Returns the other listeners' ports and the additional reserved ports, without the ports that
    /// are always reserved.
    fn reserved(&self) -> BTreeSet<u16> {
        let ports = self.proxy_ports().into_iter();
        ports
            .filter(|port| *port != self.probe_address.port() && !probe::ports::PROXY_PORTS.contains(port))
            .collect()
    }

    /// Returns all ports of the proxy except those that are always reserved.
    pub fn proxy_ports(&self) -> Vec<u16> {
        let port = |address: &LocalAddress| match address {
            LocalAddress::Tcp(address) => Some(address.port()),
            LocalAddress::Unix(_) => None,
        };
        let stats = self.stats_address.map(|address| address.port());
        let ports = [Some(self.probe_address.port()), port(&self.admin), port(&self.local_address), stats];
        ports.into_iter().flatten().chain(self.reserved_ports.iter().copied()).collect()
    }

    /// Renders the bootstrap as JSON with sorted keys and a trailing newline. Equal values render
    /// to equal bytes.
    pub fn render(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.value()).expect("a JSON value can be written");
        text.push('\n');
        text
    }

    pub fn render_compact(&self) -> String {
        self.value().to_string()
    }

    fn value(&self) -> Value {
        let template = serde_json::from_str(TEMPLATE).expect("the build wrote this JSON");
        let mut bootstrap = fill(template, &self.values()).expect("a test renders the whole template");
        // A disabled listener has no address, because null removes the key.
        if let Some(Value::Array(listeners)) = bootstrap.pointer_mut("/static_resources/listeners") {
            listeners.retain(|listener| listener.get("address").is_some());
            if let Some(probes) = listeners.first_mut().filter(|_| self.filter.is_some()) {
                self.clients().add_node_chain(probes);
            }
        }
        if self.filter.is_none() {
            remove_probe_clusters(&mut bootstrap);
        }
        if !self.reuse_connections {
            remove_reuse(&mut bootstrap);
        }
        remove_filter(&mut bootstrap, if self.is_native() { WASM } else { NATIVE });
        if self.is_native() {
            replace_forwarded_for(&mut bootstrap);
        }
        if self.envoy_version < EnvoyVersion::CAPABILITIES_IN_VM_CONFIG {
            capabilities_outside_vm_config(&mut bootstrap);
        }
        // serde_json sorts keys only if no other crate of the build enables its feature
        // `preserve_order`.
        bootstrap.sort_all_objects();
        bootstrap
    }

    fn clients(&self) -> Clients {
        Clients::new(&self.allow_from, &self.node)
    }

    fn is_native(&self) -> bool {
        matches!(self.filter, Some(FilterCode::Module(_)))
    }

    /// Renders the bootstrap for display: the values of probe headers, which may be tokens, become
    /// `***`.
    pub fn render_without_secrets(&self) -> String {
        Self { app_probers: self.app_probers.as_deref().map(without_secrets), ..self.clone() }.render()
    }

    /// Returns Envoy's connect timeouts for probes that use a route and for those that use a
    /// callout. Each exceeds the longest probe timeout, so that the probe's own deadline ends the
    /// attempt, but only slightly, so that no attempt lasts until the next probe. Hooks have no
    /// deadline; their connections get 30 s.
    fn connect_timeouts(&self) -> (Duration, Duration) {
        let checked = PluginConfig::parse(self.plugin_configuration().as_bytes());
        let probers = checked.map(|checked| checked.probers).unwrap_or_default();
        let (hooks, probes): (Vec<_>, Vec<_>) = probers.iter().partition(|(path, _)| path.kind().is_hook());
        let longest = probes.iter().map(|(_, prober)| prober.timeout).max().unwrap_or(SHORTEST_TIMEOUT);
        let by_route = if hooks.is_empty() { longest } else { longest.max(HOOK_CONNECT_TIMEOUT) };
        (by_route + AFTER_TIMEOUT, longest + AFTER_TIMEOUT)
    }

    fn values(&self) -> BTreeMap<&'static str, Value> {
        let (by_route, by_callout) = self.connect_timeouts();
        let seconds = |time: Duration| Value::from(format!("{}s", time.as_secs_f64()));
        // Without the filter there is no listener.
        let (probe, probe_additional) =
            self.filter.as_ref().map_or((Value::Null, Value::Null), |_| listener(self.probe_address));
        let (stats, stats_additional) = self.stats_address.map_or((Value::Null, Value::Null), listener);
        let filter = match &self.filter {
            Some(FilterCode::File(file) | FilterCode::Module(file)) => {
                json!({"filename": file.to_string_lossy()})
            }
            Some(FilterCode::Inline(bytes)) => json!({"inline_bytes": STANDARD.encode(bytes)}),
            None => Value::Null,
        };
        let [node, dynamic_resources, xds_cluster, sds_cluster] =
            self.xds.as_ref().map_or([const { Value::Null }; 4], xds_values);
        BTreeMap::from([
            ("NODE", node),
            ("DYNAMIC_RESOURCES", dynamic_resources),
            ("XDS_CLUSTER", xds_cluster),
            ("SDS_CLUSTER", sds_cluster),
            ("ADMIN_LISTENER", admin_listener(&self.admin)),
            ("ADMIN_ADDRESS", local_address(&self.admin)),
            ("AGENT_ADDRESS", local_address(&self.local_address)),
            ("PROBE_LISTENER", probe),
            ("PROBE_ADDITIONAL_ADDRESSES", probe_additional),
            ("PROBE_FILTER_CHAIN_MATCH", self.clients().general_match()),
            ("STATS_LISTENER", stats),
            ("STATS_ADDITIONAL_ADDRESSES", stats_additional),
            ("UPSTREAM_BIND_CONFIG", upstream_bind_config(&self.sources)),
            ("ROUTE_CONNECT_TIMEOUT", seconds(by_route)),
            ("CALLOUT_CONNECT_TIMEOUT", seconds(by_callout)),
            ("FILTER_CODE", filter),
            ("IS_NATIVE", if self.is_native() { true.into() } else { Value::Null }),
            ("PLUGIN_CONFIGURATION", self.plugin_configuration().into()),
        ])
    }
}

/// Returns node, dynamic resources, and the clusters of the agent's socket. The names of the clusters are
/// those of Istio, because resources from istiod refer to them.
fn xds_values(xds: &XdsSocket) -> [Value; 4] {
    let XdsSocket { path, is_delta, node_id } = xds;
    let ads = json!({"ads": {}, "resource_api_version": "V3"});
    let dynamic_resources = json!({
        "ads_config": {
            "api_type": if *is_delta { "DELTA_GRPC" } else { "GRPC" },
            "transport_api_version": "V3",
            "set_node_on_first_message_only": true,
            "grpc_services": [{"envoy_grpc": {
                "cluster_name": "xds-grpc",
                "retry_policy": {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}},
            }}],
        },
        "cds_config": ads,
        "lds_config": ads,
    });
    let cluster = |name: &str| {
        json!({
            "name": name,
            "type": "STATIC",
            "connect_timeout": "1s",
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            }},
            "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [
                {"endpoint": {"address": {"pipe": {"path": path.to_string_lossy()}}}},
            ]}]},
        })
    };
    let node = json!({"id": node_id, "cluster": "app-health"});
    [node, dynamic_resources, cluster("xds-grpc"), cluster("sds-grpc")]
}

fn without_secrets(table: &str) -> String {
    let Ok(mut table) = serde_json::from_str(table) else { return "***".to_owned() };
    hide(&mut table, false);
    table.to_string()
}

/// Replaces every `value` below `httpHeaders`. Both keys match case-insensitively, as in
/// Kubernetes.
fn hide(value: &mut Value, in_headers: bool) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| hide(element, in_headers)),
        Value::Object(fields) => {
            for (key, value) in fields {
                if in_headers && key.eq_ignore_ascii_case("value") {
                    *value = "***".into();
                } else {
                    hide(value, in_headers || key.eq_ignore_ascii_case("httpHeaders"));
                }
            }
        }
        _ => {}
    }
}

/// Moves the filter's `capability_restriction_config` from `vm_config` to the enclosing object,
/// where Envoy before 1.40 reads it.
fn capabilities_outside_vm_config(value: &mut Value) {
    const CAPABILITIES: &str = "capability_restriction_config";
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(capabilities_outside_vm_config),
        Value::Object(fields) => {
            let vm_config = fields.get_mut("vm_config").and_then(Value::as_object_mut);
            if let Some(capabilities) = vm_config.and_then(|vm_config| vm_config.remove(CAPABILITIES)) {
                fields.insert(CAPABILITIES.into(), capabilities);
            }
            fields.values_mut().for_each(capabilities_outside_vm_config);
        }
        _ => {}
    }
}

/// Removes the clusters that only the probe listener uses.
fn remove_probe_clusters(bootstrap: &mut Value) {
    let clusters = bootstrap.pointer_mut("/static_resources/clusters").and_then(Value::as_array_mut);
    let is_probes = |cluster: &Value| {
        let name = cluster.get("name").and_then(Value::as_str).unwrap_or_default();
        name.starts_with("app_health_") && name != "app_health_admin"
    };
    clusters.into_iter().for_each(|clusters| clusters.retain(|cluster| !is_probes(cluster)));
}

/// Removes the clusters of `--reuse-connections`, and the routes to them.
fn remove_reuse(value: &mut Value) {
    match value {
        Value::Array(elements) => {
            let is_reuse = |name: Option<&Value>| {
                name.and_then(Value::as_str).is_some_and(|name| name.starts_with("app_health_reuse_"))
            };
            elements.retain(|element| {
                !is_reuse(element.get("name")) && !is_reuse(element.pointer("/route/cluster"))
            });
            elements.iter_mut().for_each(remove_reuse);
        }
        Value::Object(fields) => fields.values_mut().for_each(remove_reuse),
        _ => {}
    }
}

/// Removes an HTTP filter from every filter chain, and its settings from every route.
fn remove_filter(value: &mut Value, name: &str) {
    match value {
        Value::Array(elements) => {
            elements.retain(|element| element.get("name").is_none_or(|found| found != name));
            elements.iter_mut().for_each(|element| remove_filter(element, name));
        }
        Value::Object(fields) => {
            fields.remove(name);
            fields.values_mut().for_each(|field| remove_filter(field, name));
        }
        _ => {}
    }
}

/// Makes the clusters of callouts remove the `x-forwarded-for` that Envoy adds to every callout of a
/// dynamic module. One that the Pod declares arrives under another name.
fn replace_forwarded_for(bootstrap: &mut Value) {
    let clusters = bootstrap.pointer_mut("/static_resources/clusters").and_then(Value::as_array_mut);
    let callouts =
        clusters.into_iter().flatten().filter(|cluster| cluster.get("original_dst_lb_config").is_some());
    for cluster in callouts {
        let options = &mut cluster["typed_extension_protocol_options"];
        let filters = &mut options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]["http_filters"];
        let mutations = filters[0].pointer_mut("/typed_config/mutations/request_mutations");
        if let Some(Value::Array(mutations)) = mutations {
            let value = format!("%REQ({FORWARDED_FOR})%");
            let header = json!({"key": "x-forwarded-for", "value": value});
            mutations.insert(0, json!({"remove_on_match": {"key_matcher": {"exact": "x-forwarded-for"}}}));
            mutations.insert(1, json!({"append": {"header": header}}));
        }
    }
}

/// Returns `address` and `additional_addresses` of a listener.
fn listener(address: SocketAddr) -> (Value, Value) {
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
        (socket_address(v4), json!([{"address": socket_address(address)}]))
    } else {
        (socket_address(address), Value::Null)
    }
}

fn socket_address(address: SocketAddr) -> Value {
    json!({"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}})
}

fn local_address(address: &LocalAddress) -> Value {
    match address {
        LocalAddress::Unix(path) => json!({"pipe": {"path": path.to_string_lossy()}}),
        LocalAddress::Tcp(address) => socket_address(*address),
    }
}

fn admin_listener(admin: &LocalAddress) -> Value {
    let mut address = local_address(admin);
    if let Some(pipe) = address.get_mut("pipe") {
        pipe["mode"] = 0o600.into();
    }
    address
}

fn upstream_bind_config(sources: &[IpAddr]) -> Value {
    let source = |address: &IpAddr| json!({"address": address.to_string(), "port_value": 0});
    let Some((first, others)) = sources.split_first() else { return Value::Null };
    let mut bind = json!({"source_address": source(first)});
    if !others.is_empty() {
        bind["extra_source_addresses"] =
            others.iter().map(|other| json!({"address": source(other)})).collect();
    }
    bind
}

#[cfg(test)]
mod tests;
