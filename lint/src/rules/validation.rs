//! What cannot work: values that the API server rejects, and names that kubelet cannot resolve.

use injector::pod;
use injector::warning::quote;
use serde_json::Value;

use crate::finding::Findings;
use crate::pod_view::{Container, PodView, Role};
use crate::probe_view::{Handler, Hook, Probe};
use crate::rule::{INIT, INVALID_PROBE, NAME, NAMED_PORT};

/// The largest number that fits in a field of Kubernetes' types.
const MAX_INT: i64 = i32::MAX as i64;
const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];

/// A field of a probe or hook, and what is wrong with it.
type Problem = (String, String);

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    for container in &pod.containers {
        check_name(container, pod, findings);
        let named = container.probes().map(|probe| (probe.name, probe.handler()));
        let named: Vec<_> = named.chain(container.hooks().map(|hook| (hook.name, hook.handler()))).collect();
        if container.role == Role::Init {
            for (name, _) in named {
                let text = "Kubernetes allows it only with restartPolicy: Always";
                findings.add_at(&INIT, container.place(name), "", text);
            }
            continue;
        }
        for (name, handler) in named {
            if let Some(handler) = handler {
                check_port_name(container, name, handler, findings);
            }
        }
        for probe in container.probes() {
            for (field, message) in probe_problems(probe) {
                findings.add_at(&INVALID_PROBE, container.place(probe.name), &field, message);
            }
        }
        for hook in container.hooks() {
            for (field, message) in hook_problems(hook, pod.grace_period) {
                findings.add_at(&INVALID_PROBE, container.place(hook.name), &field, message);
            }
        }
    }
}

/// Returns true if the API server rejects the probe or hook `name` of a container.
pub(super) fn is_rejected(container: &Value, name: &'static str) -> bool {
    let lifecycle = pod::field(container, "lifecycle").unwrap_or(&Value::Null);
    match name {
        "preStop" | "postStart" => pod::field(lifecycle, name)
            .is_some_and(|value| !hook_problems(Hook { name, value }, u64::MAX).is_empty()),
        _ => {
            pod::field(container, name).is_some_and(|value| !probe_problems(Probe { name, value }).is_empty())
        }
    }
}

fn check_name(container: &Container, pod: &PodView, findings: &mut Findings) {
    let name = container.name;
    let is_valid = !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    let place = container.place("");
    if !is_valid {
        let text =
            format!("{}: must be lower-case letters, digits and hyphens", quote(&container.value["name"]));
        findings.add_at(&NAME, place, "name", text);
    } else if pod.containers.iter().filter(|other| other.name == name).count() > 1 {
        findings.add_at(&NAME, place, "name", format!("several containers are called {name}"));
    }
}

fn check_port_name(container: &Container, name: &'static str, handler: Handler, findings: &mut Findings) {
    let Some(port @ Value::String(text)) = handler.port() else { return };
    if port_name_problem(text).is_some() || matches!(handler, Handler::Grpc(_)) {
        return;
    }
    if !container.ports().iter().any(|port| pod::name(port) == text) {
        let declared: Vec<&str> =
            container.ports().iter().map(pod::name).filter(|name| !name.is_empty()).collect();
        let declared = match declared.as_slice() {
            [] => "it declares no port with a name".to_owned(),
            names => format!("it declares {}", names.join(", ")),
        };
        let message =
            format!("port {} is not a port of container {}; {declared}", quote(port), container.name);
        findings.add_at(&NAMED_PORT, container.place(name), &format!("{}.port", handler.name()), message);
    }
}

fn probe_problems(probe: Probe) -> Vec<Problem> {
    let Probe { name, value } = probe;
    let mut problems = Vec::new();
    if !value.is_object() {
        return vec![(String::new(), "must be an object".to_owned())];
    }
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        if let Some(number) = pod::field(value, field) {
            problems.extend(int_problem(field, number, 0));
        }
    }
    if let Some(number) = pod::field(value, "terminationGracePeriodSeconds") {
        if name == "readinessProbe" {
            let text = "must not be set for a readinessProbe".to_owned();
            problems.push(("terminationGracePeriodSeconds".to_owned(), text));
        } else if number.as_i64().is_none_or(|seconds| seconds < 1) {
            let text = format!("{}: must be at least 1", quote(number));
            problems.push(("terminationGracePeriodSeconds".to_owned(), text));
        }
    }
    if name != "readinessProbe" && value["successThreshold"].as_i64().is_some_and(|successes| successes > 1) {
        problems.push(("successThreshold".to_owned(), format!("must be 1 for a {name}")));
    }
    problems.extend(handler_problems(value, &PROBE_HANDLERS));
    problems
}

fn hook_problems(hook: Hook, grace_period: u64) -> Vec<Problem> {
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
            problems.push(("sleep.seconds".to_owned(), format!("{}: must be 0{limit}", quote(seconds))));
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
        return vec![(name.to_owned(), "must be an object".to_owned())];
    }
    let mut problems = Vec::new();
    match name {
        "exec" if pod::list(fields, "command").is_empty() => {
            problems.push(("exec.command".to_owned(), "must have at least one word".to_owned()));
        }
        "grpc" => problems.extend(int_problem("grpc.port", &fields["port"], 1)),
        "httpGet" => {
            problems.extend(port_problem("httpGet.port", &fields["port"]));
            if let Some(scheme) = pod::field(fields, "scheme")
                && !matches!(scheme.as_str(), Some("" | "HTTP" | "HTTPS"))
            {
                let text = format!("{}: must be HTTP or HTTPS", quote(scheme));
                problems.push(("httpGet.scheme".to_owned(), text));
            }
        }
        "tcpSocket" => problems.extend(port_problem("tcpSocket.port", &fields["port"])),
        _ => {}
    }
    problems
}

/// Returns a problem if a value is not an integer of at least `least`; a port is at most 65535.
fn int_problem(field: &str, value: &Value, least: i64) -> Option<Problem> {
    let most = if field.ends_with("port") { i64::from(u16::MAX) } else { MAX_INT };
    // kubectl converts 10.0 to 10.
    let whole = value.as_f64().filter(|number| number.fract() == 0.0);
    let is_valid = whole.is_some_and(|number| number >= least as f64 && number <= most as f64);
    let text = || format!("{}: must be a number from {least} to {most}", quote(value));
    (!is_valid).then(|| (field.to_owned(), text()))
}

fn port_problem(field: &str, port: &Value) -> Option<Problem> {
    match port {
        Value::String(name) => port_name_problem(name)
            .map(|reason| (field.to_owned(), format!("{}: as the name of a port, {reason}", quote(port)))),
        number => int_problem(field, number, 1),
    }
}

/// Returns why a text cannot be the name of a port, as in Kubernetes' `IsValidPortName`.
fn port_name_problem(name: &str) -> Option<&'static str> {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.len() > 15 {
        Some("it must have at most 15 characters")
    } else if !name.bytes().all(is_valid) {
        Some("it must be lower-case letters, digits and hyphens")
    } else if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Some("it must have a letter; write a number without quotes")
    } else if name.contains("--") || name.starts_with('-') || name.ends_with('-') {
        Some("it must not begin or end with a hyphen, nor have two in a row")
    } else {
        None
    }
}
