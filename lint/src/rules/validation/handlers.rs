//! What the API server rejects in probes and hooks.

use injector::pod;
use serde_json::Value;

use super::fields::{
    Problem, command_problems, header_problems, int_problem, missing, port_problem, string_problem, wrong,
};
use crate::probe_view::{Hook, Probe};

pub(super) const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
pub(super) const HOOK_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
/// The numbers of a probe that have a default.
pub(super) const PROBE_NUMBERS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
const GRACE_PERIOD: &str = "terminationGracePeriodSeconds";

pub(super) fn probe_problems(probe: Probe) -> Vec<Problem> {
    let Probe { name, value } = probe;
    let mut problems = Vec::new();
    if !value.is_object() {
        return vec![(String::new(), "must be an object".to_owned())];
    }
    for field in PROBE_NUMBERS {
        if let Some(number) = pod::field(value, field) {
            problems.extend(int_problem(field, number, 0));
        }
    }
    if let Some(number) = pod::field(value, GRACE_PERIOD) {
        if name == "readinessProbe" {
            let text = format!("{GRACE_PERIOD} must not be set for a readinessProbe");
            problems.push((GRACE_PERIOD.to_owned(), text));
        } else if number.as_i64().is_none_or(|seconds| seconds < 1) {
            problems.push(wrong(GRACE_PERIOD, number, "must be at least 1"));
        }
    }
    let successes = &value["successThreshold"];
    if name != "readinessProbe" && successes.as_i64().is_some_and(|successes| successes > 1) {
        problems.push(wrong("successThreshold", successes, &format!("must be 1 for a {name}")));
    }
    problems.extend(handler_problems(value, &PROBE_HANDLERS));
    problems
}

/// `grace_period` is the `terminationGracePeriodSeconds` of the Pod.
pub(super) fn hook_problems(hook: Hook, grace_period: u64) -> Vec<Problem> {
    if !hook.value.is_object() {
        return vec![(String::new(), "must be an object".to_owned())];
    }
    let mut problems = handler_problems(hook.value, &HOOK_HANDLERS);
    if let Some(sleep) = pod::field(hook.value, "sleep") {
        let seconds = &sleep["seconds"];
        if seconds.as_u64().is_none_or(|seconds| seconds > grace_period) {
            let limit = match grace_period {
                u64::MAX => String::new(),
                limit => format!(" to {limit}, which is terminationGracePeriodSeconds"),
            };
            problems.push(wrong("sleep.seconds", seconds, &format!("must be 0{limit}")));
        }
    }
    problems
}

/// Checks the handlers of a probe or hook: exactly one, with valid fields.
fn handler_problems(value: &Value, known: &[&'static str]) -> Vec<Problem> {
    let found: Vec<&str> = known.iter().copied().filter(|name| pod::field(value, name).is_some()).collect();
    let name = match found.as_slice() {
        [] => return vec![(String::new(), format!("must have one of {}", known.join(", ")))],
        [name] => *name,
        several => {
            return vec![(String::new(), format!("must have one handler, and has {}", several.join(", ")))];
        }
    };
    let fields = &value[name];
    if !fields.is_object() {
        return vec![wrong(name, fields, "must be an object")];
    }
    let mut problems = Vec::new();
    match name {
        "exec" => problems.extend(command_problems(fields)),
        "grpc" => {
            let port = &fields["port"];
            problems.extend(match port {
                Value::Null => Some(missing("grpc.port")),
                port => int_problem("grpc.port", port, 1),
            });
            problems.extend(string_problem("grpc.service", &fields["service"]));
        }
        "httpGet" => {
            problems.extend(port_problem("httpGet.port", &fields["port"]));
            for field in ["path", "host"] {
                problems.extend(string_problem(&format!("httpGet.{field}"), &fields[field]));
            }
            if let Some(scheme) = pod::field(fields, "scheme")
                && !matches!(scheme.as_str(), Some("" | "HTTP" | "HTTPS"))
            {
                problems.push(wrong("httpGet.scheme", scheme, "must be HTTP or HTTPS"));
            }
            problems.extend(header_problems(&fields["httpHeaders"]));
        }
        "tcpSocket" => {
            problems.extend(port_problem("tcpSocket.port", &fields["port"]));
            problems.extend(string_problem("tcpSocket.host", &fields["host"]));
        }
        _ => {}
    }
    problems
}
