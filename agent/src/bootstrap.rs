//! Renders the Envoy bootstrap by filling values into the template `envoy-config/bootstrap.yaml`,
//! which the build script converts to JSON.

mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use probe::PluginConfig;
use serde_json::{Value, json};

use crate::address::{Cidr, LocalAddress};
use crate::envoy_version::EnvoyVersion;
use template::fill;

/// The template `envoy-config/bootstrap.yaml`, converted to JSON by the build script.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/bootstrap.json"));

/// Default `timeoutSeconds` of a kubelet probe.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Connect timeout for lifecycle hooks, for which the kubelet sets no timeout.
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
    pub filter: FilterCode,
    /// Sources that may call the probe listener besides loopback; if empty, all sources are
    /// allowed.
    pub allow_from: Vec<Cidr>,
    /// Additional ports of the proxy that no probe may target; none is 0.
    pub reserved_ports: Vec<u16>,
    /// Source addresses of probes, at most one per address family; if empty, the kernel chooses.
    pub sources: Vec<IpAddr>,
    pub instance_ip: IpAddr,
    pub envoy_version: EnvoyVersion,
    pub app_probers: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterCode {
    /// Absolute path of the Wasm file.
    File(PathBuf),
    Inline(Vec<u8>),
}

impl Bootstrap {
    /// Returns the filter's configuration as JSON with sorted keys:
    /// `{"podIP":…,"probers":…,"reservedPorts":[…],"statusPort":…}`. The prober table stays the
    /// string that was given, so that error messages refer to that string.
    pub fn plugin_configuration(&self) -> String {
        let mut configuration = json!({
            "podIP": self.instance_ip.to_string(),
            "statusPort": self.probe_address.port(),
            "reservedPorts": self.reserved(),
        });
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
        }
        if self.envoy_version < EnvoyVersion::CAPABILITIES_IN_VM_CONFIG {
            capabilities_outside_vm_config(&mut bootstrap);
        }
        // serde_json sorts keys only if no other crate of the build enables its feature
        // `preserve_order`.
        bootstrap.sort_all_objects();
        bootstrap
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
        let (probe, probe_additional) = listener(self.probe_address);
        let (stats, stats_additional) = self.stats_address.map_or((Value::Null, Value::Null), listener);
        let filter = match &self.filter {
            FilterCode::File(file) => json!({"filename": file.to_string_lossy()}),
            FilterCode::Inline(bytes) => json!({"inline_bytes": STANDARD.encode(bytes)}),
        };
        BTreeMap::from([
            ("ADMIN_LISTENER", admin_listener(&self.admin)),
            ("ADMIN_ADDRESS", local_address(&self.admin)),
            ("AGENT_ADDRESS", local_address(&self.local_address)),
            ("PROBE_LISTENER", probe),
            ("PROBE_ADDITIONAL_ADDRESSES", probe_additional),
            ("PROBE_FILTER_CHAIN_MATCH", filter_chain_match(&self.allow_from)),
            ("STATS_LISTENER", stats),
            ("STATS_ADDITIONAL_ADDRESSES", stats_additional),
            ("UPSTREAM_BIND_CONFIG", upstream_bind_config(&self.sources)),
            ("ROUTE_CONNECT_TIMEOUT", seconds(by_route)),
            ("CALLOUT_CONNECT_TIMEOUT", seconds(by_callout)),
            ("FILTER_CODE", filter),
            ("PLUGIN_CONFIGURATION", self.plugin_configuration().into()),
        ])
    }
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

/// The result always contains 127.0.0.1 and ::1, because the agent checks the listener from there.
/// It does not contain all of 127.0.0.0/8, because captured traffic of other clients arrives from
/// 127.0.0.6.
fn filter_chain_match(allow_from: &[Cidr]) -> Value {
    if allow_from.is_empty() {
        return Value::Null;
    }
    let loopback = [
        Cidr { address: Ipv4Addr::LOCALHOST.into(), prefix_len: 32 },
        Cidr { address: Ipv6Addr::LOCALHOST.into(), prefix_len: 128 },
    ];
    let range =
        |block: &Cidr| json!({"address_prefix": block.address.to_string(), "prefix_len": block.prefix_len});
    let mut ranges: Vec<Value> = Vec::new();
    for block in loopback.iter().chain(allow_from).map(range) {
        // Envoy rejects a filter chain that matches the same range twice.
        if !ranges.contains(&block) {
            ranges.push(block);
        }
    }
    json!({"source_prefix_ranges": ranges})
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
