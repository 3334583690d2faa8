//! The filter chains of the probe listener: which clients may connect, and a chain for the node, so
//! that other clients cannot take the connections that kubelet needs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use address::Cidr;

/// Connections of the node: kubelet opens one for each probe, and scrapers may run on the node.
const NODE_CONNECTIONS: u32 = 1024;
/// Connections of other clients if the node has a separate chain: each takes some of Envoy's memory.
const OTHER_CONNECTIONS: u32 = 384;
/// Distinguishes the node's chain in Envoy's metrics.
const NODE_STAT_PREFIX: &str = "app_health_node";
/// Another root context of the same wasm VM, so that the node has places for probes in flight of its
/// own, as it has with the native form.
const NODE_ROOT_ID: &str = "app_health_node";

/// 127.0.0.1 and ::1, because the agent checks the listener from there. Not all of 127.0.0.0/8,
/// because captured traffic of other clients arrives from 127.0.0.6.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// The clients of the probe listener, by the filter chain that serves them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clients {
    /// Clients of the general chain; `None` means all.
    general: Option<Vec<Cidr>>,
    /// Clients of the node's chain; if empty, there is no such chain.
    node: Vec<Cidr>,
}

impl Clients {
    /// Envoy rejects two chains that match the same range, and otherwise uses the chain with the
    /// longest matching prefix. So the node's chain exists only if it leaves clients for the general
    /// one.
    pub(super) fn new(allow_from: &[Cidr], node: &[IpAddr]) -> Self {
        let node = with_loopback(node.iter().copied().map(Cidr::from));
        if allow_from.is_empty() {
            let node = if node.len() > LOOPBACK.len() { node } else { Vec::new() };
            return Self { general: None, node };
        }
        let all = with_loopback(allow_from.iter().copied());
        let is_allowed = |address: &&Cidr| all.iter().any(|block| block.contains(address.address));
        let node: Vec<Cidr> = node.iter().filter(is_allowed).copied().collect();
        let others: Vec<Cidr> = all.iter().filter(|block| !node.contains(block)).copied().collect();
        if others.is_empty() || node.len() == LOOPBACK.len() {
            return Self { general: Some(all), node: Vec::new() };
        }
        Self { general: Some(others), node }
    }

    /// Returns the match of the general chain.
    pub(super) fn general_match(&self) -> Value {
        self.general.as_deref().map_or(Value::Null, source_match)
    }

    /// Adds the node's chain to a listener whose only chain is the general one.
    pub(super) fn add_node_chain(&self, listener: &mut Value) {
        let Some(Value::Array(chains)) = listener.get_mut("filter_chains") else { return };
        let Some(general) = chains.first_mut().filter(|_| !self.node.is_empty()) else { return };
        let mut chain = general.clone();
        general["filters"][0]["typed_config"]["max_connections"] = OTHER_CONNECTIONS.into();
        chain["name"] = "node".into();
        chain["filter_chain_match"] = source_match(&self.node);
        let limit = &mut chain["filters"][0]["typed_config"];
        limit["stat_prefix"] = NODE_STAT_PREFIX.into();
        limit["max_connections"] = NODE_CONNECTIONS.into();
        rename_root(&mut chain);
        chains.push(chain);
    }
}

fn with_loopback(blocks: impl Iterator<Item = Cidr>) -> Vec<Cidr> {
    let mut all: Vec<Cidr> = Vec::new();
    for block in LOOPBACK.map(Cidr::from).into_iter().chain(blocks) {
        if !all.contains(&block) {
            all.push(block);
        }
    }
    all
}

fn source_match(blocks: &[Cidr]) -> Value {
    let range =
        |block: &Cidr| json!({"address_prefix": block.address.to_string(), "prefix_len": block.prefix_len});
    json!({"source_prefix_ranges": blocks.iter().map(range).collect::<Vec<_>>()})
}

/// Sets the root context of the wasm filter.
fn rename_root(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(rename_root),
        Value::Object(fields) => {
            if let Some(root) = fields.get_mut("root_id") {
                *root = NODE_ROOT_ID.into();
            }
            fields.values_mut().for_each(rename_root);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
