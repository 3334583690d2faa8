//! The rules for objects that `inject` refuses or warns about.

use injector::warning::{Code, Warning};
use injector::workload::PodLocation;
use injector::{STATUS_ANNOTATION, pod};
use serde_json::Value;

use crate::Options;
use crate::finding::{Findings, Place};
use crate::path;
use crate::rule::{self, INVALID_OBJECT};
use crate::rules::validation;

/// Fields of a container that a warning of the injector can be about.
const FIELDS: [&str; 5] = ["livenessProbe", "readinessProbe", "startupProbe", "preStop", "postStart"];

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
        findings.add(rule, &pod_field(warning, pod), &warning.text);
        return;
    };
    let Some((list, index)) = position(pod, container) else {
        // A container of the template, which is not in the document.
        findings.add(rule, "spec", &warning.text);
        return;
    };
    let value = &pod["spec"][list][index];
    let probe = FIELDS.into_iter().find(|name| name == field).unwrap_or_default();
    let place = Place { list, index, container: pod::name(value), probe };
    match warning.code {
        // The rules about probes find these with and without injection, and name the field.
        Code::Host | Code::NamedPort | Code::Init | Code::Name => {}
        Code::Handler | Code::Malformed if validation::is_rejected(value, probe) => {}
        Code::Malformed if validation::has_rejected_port(value) => {}
        Code::Table | Code::TableSize => findings.add_at(rule, place, "env", &warning.text),
        _ => findings.add_at(rule, place, "", &warning.text),
    }
}

/// Returns the field that causes a warning about a Pod.
fn pod_field(warning: &Warning, pod: &Value) -> String {
    match warning.code {
        Code::Annotation => {
            let name = warning.text.split([' ', ':']).next().unwrap_or_default();
            label_or_annotation(pod, name)
        }
        Code::HostNetwork => "spec.hostNetwork".to_owned(),
        Code::Hold => path::annotation("proxy.istio.io/config"),
        Code::NoSidecar => label_or_annotation(pod, "sidecar.istio.io/inject"),
        Code::StatusPort => path::annotation("status.sidecar.istio.io/port"),
        Code::TemplateChanged => path::annotation(STATUS_ANNOTATION),
        Code::AnnotationSize => "metadata.annotations".to_owned(),
        Code::PodResources | Code::SecurityContext | Code::Windows => named_field(warning),
        Code::PortClash | Code::OtherInjector | Code::Sidecar => "spec.containers".to_owned(),
        _ => "spec".to_owned(),
    }
}

/// Returns the field of the Pod with which the text of a warning begins; `spec` if it is a field of
/// the sidecar.
fn named_field(warning: &Warning) -> String {
    let field = warning.text.split([' ', ':']).next().unwrap_or_default();
    if field.starts_with("spec.") { field.to_owned() } else { "spec".to_owned() }
}

fn label_or_annotation(pod: &Value, name: &str) -> String {
    match pod::label(pod, name) {
        Some(_) => path::label(name),
        None => path::annotation(name),
    }
}

/// Returns the list and index of a container, which a warning names by its name, or by its list and
/// index if the name is not valid.
fn position(pod: &Value, container: &str) -> Option<(&'static str, usize)> {
    ["initContainers", "containers"].into_iter().find_map(|list| {
        let elements = pod::list(&pod["spec"], list);
        let index = container.strip_prefix(list).and_then(|rest| {
            rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok().filter(|index| *index < elements.len())
        });
        let index = index.or_else(|| elements.iter().position(|element| pod::name(element) == container));
        Some((list, index?))
    })
}
