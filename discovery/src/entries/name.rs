//! Derives the name of an auto-registered entry from the node metadata, and validates that
//! metadata.

use std::net::IpAddr;

use workload_health::health_report::{AUTO_REGISTER_GROUP, INSTANCE_IPS, NAMESPACE, WORKLOAD_ENTRY};
use workload_health::text::printable;
use workload_health::workload_group::{is_dns_label, is_dns_subdomain};

use super::Node;
use crate::objects::Key;

/// Maximum length of a Kubernetes object name, in bytes.
const MAX_NAME_BYTES: usize = 253;

/// The entry that a stream registers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RegistrationTarget {
    /// An entry registered from a WorkloadGroup.
    Group { group: Key, entry: Key, address: IpAddr },
    /// An entry that the node names in `WORKLOAD_ENTRY`.
    Entry(Key),
}

/// Reads the target from the node. Returns `None` for a client that only subscribes, and the field
/// and the reason as an error.
pub(super) fn target(node: &Node, peer: IpAddr) -> Result<Option<RegistrationTarget>, String> {
    if let (Some(_), Some(_)) = (&node.group, &node.workload_entry) {
        return Err(format!("{AUTO_REGISTER_GROUP}, {WORKLOAD_ENTRY}: only one of them may be given"));
    }
    if node.group.is_none() && node.workload_entry.is_none() {
        return Ok(None);
    }
    let namespace = node.namespace.as_deref().ok_or_else(|| format!("{NAMESPACE}: is required"))?;
    if !is_dns_label(namespace) {
        return Err(format!("{NAMESPACE}: must be a DNS-1123 label, got {}", quoted(namespace)));
    }
    let address = address(node)?;
    if node.group.is_some() {
        check_address(address, peer)?;
    }
    for (field, name) in [(AUTO_REGISTER_GROUP, &node.group), (WORKLOAD_ENTRY, &node.workload_entry)] {
        if let Some(name) = name.as_deref().filter(|name| !is_dns_subdomain(name)) {
            return Err(format!("{field}: must be a DNS-1123 name, got {}", quoted(name)));
        }
    }
    let key = |name: &str| Key::new(namespace, name);
    Ok(match (&node.group, &node.workload_entry) {
        (Some(group), _) => {
            let name = entry_name(group, address, node.network.as_deref());
            if !is_dns_subdomain(&name) {
                return Err(format!("{AUTO_REGISTER_GROUP}: {} is not a DNS-1123 name", quoted(&name)));
            }
            Some(RegistrationTarget::Group { group: key(group), entry: key(&name), address })
        }
        (None, Some(entry)) => Some(RegistrationTarget::Entry(key(entry))),
        (None, None) => None,
    })
}

/// Returns the first address of INSTANCE_IPS, or else the address in the node ID.
fn address(node: &Node) -> Result<IpAddr, String> {
    let of_id = node.id.split('~').nth(1);
    let text = node.instance_ips.first().map(String::as_str).or(of_id).unwrap_or_default();
    match text.trim().parse::<IpAddr>() {
        Ok(address) if !address.is_unspecified() && !address.is_multicast() => Ok(address.to_canonical()),
        _ => Err(format!("{INSTANCE_IPS}: must begin with the workload's IP address, got {}", quoted(text))),
    }
}

/// Checks that other machines can have a machine with this address as their peer. A loopback
/// address is accepted from a client on this machine.
fn check_address(address: IpAddr, peer: IpAddr) -> Result<(), String> {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let is_foreign_loopback = address.is_loopback() && !peer.is_loopback();
    if is_link_local || is_foreign_loopback {
        return Err(format!(
            "{INSTANCE_IPS}: must not be a loopback, link-local or broadcast address, got {address}"
        ));
    }
    Ok(())
}

/// Builds `<group>-<ip>[-<network>]`. Like Istio, it cuts a name that is too long at the front;
/// then it removes leading characters up to a letter or digit.
fn entry_name(group: &str, address: IpAddr, network: Option<&str>) -> String {
    let mut name = format!("{group}-{}", address.to_string().replace(':', "-"));
    if let Some(network) = network.filter(|network| !network.is_empty()) {
        name.push('-');
        name.push_str(network);
    }
    let mut from = name.len().saturating_sub(MAX_NAME_BYTES);
    while !name.is_char_boundary(from) {
        from += 1;
    }
    match from {
        0 => name,
        _ => name[from..].trim_start_matches(|char: char| !char.is_ascii_alphanumeric()).to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", printable(text))
}

#[cfg(test)]
mod tests;
