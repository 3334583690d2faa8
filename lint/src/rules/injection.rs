//! The rules for objects that `inject` refuses or warns about.

use std::collections::HashMap;

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
            let containers = Container::all(&pod["spec"], |_| false);
            let by_name = by_name(&containers);
            for warning in &injection.warnings {
                add(warning, &by_name, findings);
            }
        }
        Err(error) => findings.add(&INVALID_OBJECT, &error.field, error.to_string()),
    }
}

fn add(warning: &Warning, containers: &HashMap<String, &Container>, findings: &mut Findings) {
    let rule = rule::of_warning(warning.code);
    let Some((container, field)) = &warning.place else {
        findings.add(rule, &warning.field, &warning.text);
        return;
    };
    let Some(container) = containers.get(container) else {
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

/// Returns the first container of each name. A warning names the container by its name, or by its
/// list and index if the name is not valid.
fn by_name<'a>(containers: &'a [Container<'a>]) -> HashMap<String, &'a Container<'a>> {
    let mut by_name = HashMap::with_capacity(2 * containers.len());
    for container in containers {
        let index = format!("{}[{}]", container.list, container.index);
        for name in [container.name.to_owned(), index] {
            by_name.entry(name).or_insert(container);
        }
    }
    by_name
}
