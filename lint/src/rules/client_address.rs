//! The rule about applications that judge by the client's address, which differs behind a sidecar.

use injector::warning::quote;
use injector::{Container, Handler, HandlerKind, pod};
use serde_json::{Value, json};

use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
use crate::rule::CLIENT_ADDRESS;

/// Words in the names of environment variables that permit clients.
const PERMITS: [&str; 5] = ["ALLOW", "PERMIT", "TRUST", "WHITELIST", "ACL"];
/// Words that make them lists of addresses.
const ADDRESSES: [&str; 7] = ["IP", "IPS", "CIDR", "CIDRS", "ADDRESS", "ADDRESSES", "NETWORKS"];
/// The address of probes behind a sidecar, of which the list must know at least this form.
const SOURCE: &str = "127.0.0.6";

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    if !pod.meshed {
        return;
    }
    for container in pod.running().filter(|container| is_asked(container)) {
        let variables = container.value["env"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(list) = variables.iter().find(|variable| is_list(variable)) {
            let message = format!(
                "{} looks like a list of permitted clients; probes come from {SOURCE} or ::6",
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

fn is_list(variable: &Value) -> bool {
    let name = pod::name(variable).to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '.', '-']).collect();
    let permits = PERMITS.iter().any(|word| name.contains(word));
    let names_addresses = words.iter().any(|word| ADDRESSES.contains(word));
    permits && names_addresses && !pod::text(variable, "value").contains(SOURCE)
}
