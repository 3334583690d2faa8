//! The rule about applications that judge by the client's address, which differs behind a sidecar.

use std::net::IpAddr;

use address::{Cidr, PROBE_SOURCE4, PROBE_SOURCE6};
use injector::warning::quote;
use injector::{Container, Handler, HandlerKind, pod};
use serde_json::{Value, json};

use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
use crate::rule::CLIENT_ADDRESS;

/// The beginnings of words with which the name of an environment variable says that it permits clients.
const PERMITS: [&str; 4] = ["ALLOW", "PERMIT", "TRUST", "WHITELIST"];
/// Words that make it a list of addresses.
const ADDRESSES: [&str; 7] = ["IP", "IPS", "CIDR", "CIDRS", "ADDRESS", "ADDRESSES", "NETWORKS"];

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    if !pod.meshed {
        return;
    }
    for container in pod.running().filter(|container| is_asked(container)) {
        let variables = container.value["env"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(list) = variables.iter().find(|variable| is_list(variable)) {
            let message = format!(
                "{} looks like a list of permitted clients; probes come from {PROBE_SOURCE4} or {PROBE_SOURCE6}",
                quote(&json!(pod::name(list)))
            );
            findings.add_at(&CLIENT_ADDRESS, Place::of(container), "env", message);
        }
    }
}

/// Returns true if a probe of the container sends a request.
fn is_asked(container: &Container) -> bool {
    let sends =
        |handler: Handler| matches!(handler, Handler::Network(kind, _) if kind != HandlerKind::TcpSocket);
    container.probes().filter_map(|probe| probe.handler()).any(sends)
}

/// Returns true for a list that does not permit the source of probes.
fn is_list(variable: &Value) -> bool {
    let name = pod::name(variable).to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '.', '-']).collect();
    let permits = words.iter().any(|word| PERMITS.iter().any(|begin| word.starts_with(begin)));
    let names_addresses = words.iter().any(|word| ADDRESSES.contains(word));
    permits && names_addresses && !permits_probes(pod::text(variable, "value"))
}

fn permits_probes(list: &str) -> bool {
    let mut blocks = list.split([',', ';', ' ']).filter_map(|block| block.parse::<Cidr>().ok());
    blocks.any(|block| block.contains(IpAddr::V4(PROBE_SOURCE4)))
}

#[cfg(test)]
mod tests;
