//! What the API server rejects in probes and hooks.

use injector::declared_probe::{GRACE_PERIOD, NUMBERS, handler_names};
use injector::{Handler, HandlerKind, Probe, ProbeKind, pod};
use serde_json::Value;

use super::fields::{
    Problem, command_problems, header_problems, int_problem, missing, port_problem, string_problem, wrong,
};

/// Returns what is wrong with a probe or hook. `grace_period` is the
/// `terminationGracePeriodSeconds` of the Pod.
pub(super) fn problems(probe: Probe, grace_period: u64) -> Vec<Problem> {
    if !probe.value.is_object() {
        return vec![(String::new(), "must be an object".to_owned())];
    }
    let mut problems = if probe.kind.is_hook() { Vec::new() } else { number_problems(probe) };
    problems.extend(handler_problems(probe, grace_period));
    problems
}

fn number_problems(probe: Probe) -> Vec<Problem> {
    let Probe { kind, value } = probe;
    let mut problems = Vec::new();
    for field in NUMBERS {
        if let Some(number) = pod::field(value, field) {
            problems.extend(int_problem(field, number, 0));
        }
    }
    if let Some(number) = pod::field(value, GRACE_PERIOD) {
        if kind == ProbeKind::Readiness {
            let text = format!("{GRACE_PERIOD} must not be set for a readinessProbe");
            problems.push((GRACE_PERIOD.to_owned(), text));
        } else if number.as_i64().is_none_or(|seconds| seconds < 1) {
            problems.push(wrong(GRACE_PERIOD, number, "must be at least 1"));
        }
    }
    let successes = &value["successThreshold"];
    if kind != ProbeKind::Readiness && successes.as_i64().is_some_and(|successes| successes > 1) {
        problems.push(wrong("successThreshold", successes, &format!("must be 1 for a {}", kind.field())));
    }
    problems
}

/// Checks the handlers of a probe or hook: exactly one, with valid fields. Another rule reports an
/// unknown one.
fn handler_problems(probe: Probe, grace_period: u64) -> Vec<Problem> {
    let handlers = probe.handlers();
    let handler = match handlers.as_slice() {
        [] => {
            let names = handler_names(probe.kind).join(", ");
            return vec![(String::new(), format!("must have one of {names}"))];
        }
        [handler] => *handler,
        several => {
            let names: Vec<&str> = several.iter().map(|handler| handler.name()).collect();
            return vec![(String::new(), format!("must have one handler, and has {}", names.join(", ")))];
        }
    };
    match handler {
        Handler::Unknown(_) => Vec::new(),
        Handler::Network(_, fields) | Handler::Exec(fields) | Handler::Sleep(fields)
            if !fields.is_object() =>
        {
            vec![wrong(handler.name(), fields, "must be an object")]
        }
        Handler::Network(kind, fields) => network_problems(kind, fields),
        Handler::Exec(fields) => command_problems(fields),
        Handler::Sleep(fields) => sleep_problems(fields, grace_period),
    }
}

fn sleep_problems(sleep: &Value, grace_period: u64) -> Vec<Problem> {
    let seconds = &sleep["seconds"];
    if seconds.as_u64().is_some_and(|seconds| seconds <= grace_period) {
        return Vec::new();
    }
    let limit = match grace_period {
        u64::MAX => String::new(),
        limit => format!(" to {limit}, which is terminationGracePeriodSeconds"),
    };
    vec![wrong("sleep.seconds", seconds, &format!("must be 0{limit}"))]
}

fn network_problems(kind: HandlerKind, fields: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    match kind {
        HandlerKind::Grpc => {
            let port = &fields["port"];
            problems.extend(match port {
                Value::Null => Some(missing("grpc.port")),
                port => int_problem("grpc.port", port, 1),
            });
            problems.extend(string_problem("grpc.service", &fields["service"]));
        }
        HandlerKind::HttpGet => {
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
        HandlerKind::TcpSocket => {
            problems.extend(port_problem("tcpSocket.port", &fields["port"]));
            problems.extend(string_problem("tcpSocket.host", &fields["host"]));
        }
    }
    problems
}
