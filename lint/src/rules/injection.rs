//! The rules for objects that `inject` refuses or warns about.

use injector::Container;
use injector::warning::{Code, Warning};
use injector::workload::PodLocation;
use serde_json::Value;

use crate::Options;
use crate::finding::{Findings, Place};
use crate::rule::{self, INVALID_OBJECT};
use crate::rules::validation;

/// Adds a finding for each warning of the injector, or for its refusal.
pub(crate) fn check(document: &Value, location: &PodLocation, options: &Options, findings: &mut Findings) {
    let pod = location.pod(document);
    match injector::apply(pod, location.context(document), &options.settings) {
        Ok(injection) => {
            for warning in &injection.warnings {
                add(warning, pod, findings);
            }
        }
        Err(error) => findings.add(&INVALID_OBJECT, &error.field, error.to_string()),
    }
}

fn add(warning: &Warning, pod: &Value, findings: &mut Findings) {
    let rule = rule::of_warning(warning.code);
    let Some((container, field)) = &warning.place else {
        findings.add(rule, &warning.field, &warning.text);
        return;
    };
    let containers = Container::all(&pod["spec"], |_| false);
    let Some(container) = containers.iter().find(|each| is_named(each, container)) else {
        // A container of the template, which is not in the document.
        findings.add(rule, "spec", &warning.text);
        return;
    };
    let mut probes = container.probes().chain(container.hooks());
    let probe = probes.find(|probe| probe.kind.field() == field);
    let place = Place { probe: probe.map(|probe| probe.kind), ..Place::of(container) };
    match warning.code {
        // The rules about probes find these with and without injection, and name the field.
        Code::Host | Code::NamedPort | Code::Init | Code::Name => {}
        Code::Handler | Code::Malformed if probe.is_some_and(validation::is_rejected) => {}
        Code::Malformed if validation::has_rejected_port(container.value) => {}
        Code::Table | Code::TableSize => findings.add_at(rule, place, "env", &warning.text),
        _ => findings.add_at(rule, place, "", &warning.text),
    }
}

/// Returns true if a warning names the container by its name, or by its list and index if the name is
/// not valid.
fn is_named(container: &Container, name: &str) -> bool {
    container.name == name || format!("{}[{}]", container.list, container.index) == name
}
