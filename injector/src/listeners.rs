//! The ports on which an injected sidecar listens, which no other container of the Pod can use.

use serde_json::Value;

use crate::settings::{STATUS_PORT, Settings};
use crate::{pod, sidecar};

/// The listeners of the agent and of its Envoy besides the probe listener: variable, flag, and the
/// default port.
const LISTENERS: [(&str, &str, u16); 4] = [
    ("APP_HEALTH_READY_ADDRESS", "--ready-address", 15021),
    ("APP_HEALTH_STATS_ADDRESS", "--stats-address", 15090),
    ("APP_HEALTH_LOCAL_ADDRESS", "--local-address", 15004),
    ("APP_HEALTH_ADMIN", "--admin", 15000),
];
/// More ports of the proxy: a variable with a list separated by commas, and a repeatable flag.
const RESERVED_PORTS: (&str, &str) = ("APP_HEALTH_RESERVED_PORTS", "--reserved-port");

/// Returns the ports of the sidecar and of the template's other containers that run beside the
/// application. `declared` is the sidecar that the Pod declares with `image: auto`, whose values
/// override those of the template.
pub(super) fn ports(settings: &Settings, declared: Option<&Value>, status_port: u16) -> Vec<u16> {
    let template = &settings.template;
    let sidecar = sidecar::merged(template, declared);
    let mut ports = vec![status_port];
    for (variable, flag, default) in LISTENERS {
        match values(&sidecar, variable, flag).first() {
            None => ports.push(default),
            // A Unix socket or `off` has no port.
            Some(address) => ports.extend(port_of(address)),
        }
    }
    let reserved = values(&sidecar, RESERVED_PORTS.0, RESERVED_PORTS.1);
    let reserved = reserved.into_iter().flat_map(|list| list.split(','));
    ports.extend(reserved.filter_map(|port| port.trim().parse::<u16>().ok()));
    let native = template.init_containers.iter().filter(|container| pod::is_native_sidecar(container));
    let containers = template.containers.iter().chain(native).chain([&sidecar]);
    for port in containers.flat_map(tcp_ports) {
        ports.push(if port == STATUS_PORT { status_port } else { port });
    }
    ports
}

/// Returns the TCP ports that a container declares.
pub(super) fn tcp_ports(container: &Value) -> impl Iterator<Item = u16> {
    let ports = pod::list(container, "ports").iter();
    let tcp = ports.filter(|port| matches!(pod::text(port, "protocol"), "" | "TCP"));
    tcp.filter_map(|port| port.get("containerPort")?.as_u64().and_then(|port| u16::try_from(port).ok()))
}

/// Returns the values of a flag of the agent, which override its variable.
fn values<'a>(container: &'a Value, variable: &str, flag: &str) -> Vec<&'a str> {
    let words = ["command", "args"].into_iter().flat_map(|key| pod::list(container, key));
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let of_flag = words.iter().enumerate().filter_map(|(index, word)| match word.strip_prefix(flag)? {
        "" => words.get(index + 1).copied(),
        rest => rest.strip_prefix('='),
    });
    let of_flag: Vec<&str> = of_flag.collect();
    if of_flag.is_empty() { variable_of(container, variable).into_iter().collect() } else { of_flag }
}

fn variable_of<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    let entry = pod::list(container, "env").iter().rev().find(|entry| pod::name(entry) == name)?;
    Some(pod::text(entry, "value")).filter(|value| !value.is_empty())
}

/// Returns the port at the end of an address such as `[::]:15021`.
fn port_of(address: &str) -> Option<u16> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse().ok().filter(|_| host != "unix")
}

#[cfg(test)]
mod tests;
