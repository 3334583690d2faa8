//! The rule about settings of the injection that are on another object than the Pod.

use injector::pod;
use injector::workload::PodLocation;
use serde_json::Value;

use crate::finding::Findings;
use crate::rule::WRONG_PLACE;

/// Names of labels and annotations with which a Pod, and no workload, asks for a sidecar or
/// configures it.
const NAMES: [&str; 5] = [
    "proxy.istio.io/config",
    "linkerd.io/inject",
    "kuma.io/sidecar-injection",
    "consul.hashicorp.com/connect-inject",
    "inject.istio.io/templates",
];
/// Such names with any word after the slash; other domains may precede the first one:
/// `status.sidecar.istio.io/port`.
const DOMAINS: [&str; 2] = ["sidecar.istio.io", "config.linkerd.io"];

/// Adds a finding for each setting on an object that contains the Pod template. A setting that the
/// template has, too, is harmless.
pub(crate) fn check(document: &Value, location: &PodLocation, findings: &mut Findings) {
    let template = location.pod(document);
    for (field, object) in location.objects_above(document) {
        for (kind, place) in
            [("labels", pod::label_path as fn(&str) -> String), ("annotations", pod::annotation_path)]
        {
            let metadata = pod::field(object, "metadata").unwrap_or(&Value::Null);
            let Some(entries) = pod::field(metadata, kind).and_then(Value::as_object) else { continue };
            for name in entries.keys().filter(|name| is_setting(name)) {
                if pod::label(template, name).is_some() || pod::annotation(template, name).is_some() {
                    continue;
                }
                let word = kind.trim_end_matches('s');
                let path = if field.is_empty() { place(name) } else { format!("{field}.{}", place(name)) };
                let text = format!(
                    "the {word} {name} has no effect here; it must be in {}",
                    location.template_field("metadata")
                );
                findings.add_object(&WRONG_PLACE, &path, text);
            }
        }
    }
}

fn is_setting(name: &str) -> bool {
    let domain = name.split_once('/').map_or("", |(domain, _)| domain);
    let is_of =
        |of: &&str| domain.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    NAMES.contains(&name) || DOMAINS.iter().any(is_of)
}
