//! The rule about fields that Kubernetes does not know, near probes and hooks: misspelt names, and
//! fields at the wrong indentation.

use injector::declared_probe::{GRACE_PERIOD, NUMBERS, handler_names};
use injector::warning::quote;
use injector::{Container, Handler, HandlerField, Probe, ProbeKind, pod};
use serde_json::{Value, json};

use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
use crate::rule::{UNKNOWN_FIELD, UNKNOWN_HANDLER};

/// The fields of a container that the rules are about.
const CONTAINER: [&str; 4] = ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
const LIFECYCLE: [&str; 3] = ["postStart", "preStop", "stopSignal"];
/// The largest number of letters by which a misspelt name differs from the one that was meant.
const MISSPELT: usize = 3;

/// Returns the fields of a probe or hook.
fn fields_of(kind: ProbeKind) -> Vec<&'static str> {
    let settings = NUMBERS.into_iter().chain([GRACE_PERIOD]).filter(|_| !kind.is_hook());
    handler_names(kind).into_iter().chain(settings).collect()
}

/// Returns true for a field of a probe, whichever of the three it is.
fn is_of_probe(name: &str) -> bool {
    fields_of(ProbeKind::Liveness).contains(&name)
}

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    for name in keys(&pod.pod["spec"]).filter(|name| is_misplaced(name, &["terminationGracePeriodSeconds"])) {
        let text = format!("unknown field {}{}", quote(&json!(name)), belongs("a container", name));
        findings.add(&UNKNOWN_FIELD, &format!("spec.{name}"), text);
    }
    for container in &pod.containers {
        check_container(container, findings);
    }
}

fn check_container(container: &Container, findings: &mut Findings) {
    let place = Place::of(container);
    for name in keys(container.value).filter(|name| is_misplaced(name, &CONTAINER)) {
        let hint = match name {
            name if is_of_probe(name) => belongs("a probe", name),
            name if LIFECYCLE.contains(&name) => belongs("lifecycle", name),
            name => suggestion(name, &CONTAINER),
        };
        findings.add_at(&UNKNOWN_FIELD, place, name, unknown(name, &hint));
    }
    let lifecycle = pod::field(container.value, "lifecycle").unwrap_or(&Value::Null);
    for name in keys(lifecycle).filter(|name| !LIFECYCLE.contains(name)) {
        let text = unknown(name, &suggestion(name, &LIFECYCLE));
        findings.add_at(&UNKNOWN_FIELD, place, &format!("lifecycle.{name}"), text);
    }
    for probe in container.probes().chain(container.hooks()) {
        check_fields(container, probe, findings);
    }
}

/// Checks the fields of a probe or hook, and those of its handlers.
fn check_fields(container: &Container, probe: Probe, findings: &mut Findings) {
    let (place, known) = (Place::of_probe(container, probe), fields_of(probe.kind));
    let handlers = probe.handlers();
    for name in keys(probe.value).filter(|name| !known.contains(name)) {
        if handlers.contains(&Handler::Unknown(name)) {
            let names = handler_names(probe.kind);
            let text = format!("unknown handler {}{}", quote(&json!(name)), suggestion(name, &names));
            findings.add_at(&UNKNOWN_HANDLER, place, name, text);
        } else {
            findings.add_at(&UNKNOWN_FIELD, place, name, unknown(name, &suggestion(name, &known)));
        }
    }
    for handler in handlers {
        let (fields, known_of_handler) = match handler {
            Handler::Network(kind, fields) => {
                (fields, kind.kubernetes_fields().map(HandlerField::name).collect())
            }
            Handler::Exec(fields) => (fields, vec!["command"]),
            Handler::Sleep(fields) => (fields, vec!["seconds"]),
            Handler::Unknown(_) => continue,
        };
        for name in keys(fields).filter(|name| !known_of_handler.contains(name)) {
            let hint = match known.contains(&name) {
                true => belongs(probe.kind.field(), name),
                false => suggestion(name, &known_of_handler),
            };
            let path = format!("{}.{name}", handler.name());
            findings.add_at(&UNKNOWN_FIELD, place, &path, unknown(&path, &hint));
        }
    }
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flat_map(|fields| fields.keys()).map(String::as_str)
}

/// Returns true for a name that is about probes or hooks and is not among the `known` ones.
fn is_misplaced(name: &str, known: &[&str]) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_about_probes = lower.contains("probe")
        || lower.starts_with("lifecy")
        || is_of_probe(name)
        || LIFECYCLE[..2].contains(&name);
    is_about_probes && !known.contains(&name)
}

fn unknown(name: &str, hint: &str) -> String {
    format!("unknown field {}{hint}", quote(&json!(name)))
}

fn belongs(place: &str, name: &str) -> String {
    format!("; {name} belongs into {place}: check the indentation")
}

/// Returns the known name that was probably meant, or all of them.
fn suggestion(name: &str, known: &[&str]) -> String {
    let lower = name.to_ascii_lowercase();
    let distances = known.iter().map(|known| (distance(&lower, &known.to_ascii_lowercase()), known));
    match distances.min_by_key(|(distance, _)| *distance) {
        Some((distance, meant)) if distance <= MISSPELT => format!("; did you mean {meant}?"),
        _ => format!("; the fields are {}", known.join(", ")),
    }
}

/// Returns the number of bytes to insert, remove or replace to get from one text to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, byte) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (index, other) in to.bytes().enumerate() {
            let cost = diagonal + usize::from(byte != other);
            diagonal = row[index + 1];
            row[index + 1] = cost.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}
