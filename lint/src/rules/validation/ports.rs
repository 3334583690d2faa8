//! What the API server rejects in the ports of a container, which probes name.

use std::collections::BTreeSet;

use injector::pod;
use serde_json::Value;

use super::fields::{Problem, int_problem, missing, port_name_problem, string_problem, wrong};

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// Returns the problems of the field `ports` of a container.
pub(super) fn port_problems(container: &Value) -> Vec<Problem> {
    let ports = match pod::field(container, "ports") {
        None => return Vec::new(),
        Some(Value::Array(ports)) => ports,
        Some(other) => return vec![wrong("ports", other, "must be a list")],
    };
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let place = format!("ports[{index}]");
        if !port.is_object() {
            problems.push(wrong(&place, port, "must be an object with containerPort"));
            continue;
        }
        let field = format!("{place}.containerPort");
        problems.extend(match &port["containerPort"] {
            Value::Null => Some(missing(&field)),
            number => int_problem(&field, number, 1),
        });
        let field = format!("{place}.name");
        match &port["name"] {
            Value::String(name) if !name.is_empty() => {
                problems.extend(port_name_problem(name).map(|reason| wrong(&field, &port["name"], reason)));
                if !names.insert(name) {
                    let text = format!("{field}: several ports of the container are called {name}");
                    problems.push((field, text));
                }
            }
            other => problems.extend(string_problem(&field, other)),
        }
        if let Some(protocol) = pod::field(port, "protocol")
            && !protocol.as_str().is_some_and(|protocol| protocol.is_empty() || PROTOCOLS.contains(&protocol))
        {
            problems.push(wrong(&format!("{place}.protocol"), protocol, "must be TCP, UDP or SCTP"));
        }
    }
    problems
}
