//! What the API server rejects in probes and hooks.

use injector::declared_probe::{GRACE_PERIOD, NUMBERS, handler_names};
use injector::{Handler, HandlerField, HandlerKind, Probe, ProbeKind, pod};
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
    let (mut ports, others): (Vec<HandlerField>, _) = kind.fields().iter().partition(|field| field.is_port());
    ports.extend(others);
    ports.into_iter().flat_map(|field| field_problems(kind, field, &fields[field.name()])).collect()
}

fn field_problems(kind: HandlerKind, field: HandlerField, value: &Value) -> Vec<Problem> {
    let path = format!("{}.{}", kind.name(), field.name());
    let problem = match field {
        HandlerField::Port => port_problem(&path, value),
        HandlerField::PortNumber if value.is_null() => Some(missing(&path)),
        HandlerField::PortNumber => int_problem(&path, value, 1),
        HandlerField::Path | HandlerField::Host | HandlerField::Service => string_problem(&path, value),
        HandlerField::Scheme => {
            let is_valid = value.is_null() || matches!(value.as_str(), Some("" | "HTTP" | "HTTPS"));
            (!is_valid).then(|| wrong(&path, value, "must be HTTP or HTTPS"))
        }
        HandlerField::HttpHeaders => return header_problems(&path, value),
        HandlerField::Mode => None,
    };
    problem.into_iter().collect()
}
