//! The part of a WorkloadGroup that agent and discovery server share.
//!
//! Source: Istio's `networking.istio.io` WorkloadGroup, versions v1, v1beta1 and v1alpha3. The
//! caller parses the YAML.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fields::{self, Checked, Findings, Object};
use crate::workload_probe::WorkloadProbe;

/// The API versions, which all have the same schema.
pub const API_VERSIONS: [&str; 3] =
    ["networking.istio.io/v1", "networking.istio.io/v1beta1", "networking.istio.io/v1alpha3"];

/// A WorkloadGroup that has been validated as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadGroup {
    pub name: String,
    pub namespace: Option<String>,
    /// The field `spec.metadata.labels`, copied to each WorkloadEntry.
    pub labels: BTreeMap<String, String>,
    /// The field `spec.metadata.annotations`, copied to each WorkloadEntry.
    pub annotations: BTreeMap<String, String>,
    pub template: WorkloadTemplate,
    pub probe: Option<WorkloadProbe>,
}

/// The `spec.template`: the initial content of each WorkloadEntry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadTemplate {
    /// The ports by name, 1 to 65535.
    pub ports: BTreeMap<String, u16>,
    pub labels: BTreeMap<String, String>,
    /// The service account. If set, an agent must prove this identity to register.
    pub service_account: Option<String>,
    pub network: Option<String>,
    /// The locality, in the form `region/zone/sub-zone`.
    pub locality: Option<String>,
    /// The load balancing weight; 1 if absent or 0.
    pub weight: u32,
}

impl WorkloadGroup {
    /// Parses a document. The error lists everything that is wrong; each line begins with a path in
    /// the document.
    pub fn parse(document: &Value) -> Result<Checked<Self>, Vec<String>> {
        let mut findings = Findings::default();
        let group = read(document, &mut findings);
        findings.checked(group)
    }
}

/// Adds errors unless `document` has this `kind` and a supported Istio `apiVersion`.
pub fn check_kind(document: &Object, kind: &str, findings: &mut Findings) {
    let bare = |name| match document.value(name) {
        None => "none".to_owned(),
        Some(Value::String(text)) => crate::text::printable(text),
        Some(other) => fields::excerpt(other),
    };
    if document.value("kind").and_then(Value::as_str) != Some(kind) {
        findings.error("kind", format_args!("expected {kind}, got {}", bare("kind")));
    }
    let version = document.value("apiVersion").and_then(Value::as_str);
    if !version.is_some_and(|version| API_VERSIONS.contains(&version)) {
        let got = bare("apiVersion");
        findings.error(
            "apiVersion",
            format_args!("expected networking.istio.io/v1, v1beta1 or v1alpha3, got {got}"),
        );
    }
}

/// Returns `metadata.name` and `metadata.namespace`; adds errors if Kubernetes would not accept
/// them.
pub fn names(document: &Object, findings: &mut Findings) -> Option<(String, Option<String>)> {
    if document.value("metadata").is_none() {
        findings.error("metadata.name", "is required");
        return None;
    }
    let metadata = document.object("metadata", findings)?;
    let name = metadata.string("name", findings);
    if metadata.value("name").is_none() {
        findings.error("metadata.name", "is required");
    } else if metadata.value("name").is_some_and(Value::is_string) && !is_dns_subdomain(name) {
        let got = fields::excerpt(&name.into());
        findings.error("metadata.name", format_args!("must be a DNS-1123 name, got {got}"));
    }
    let namespace = metadata.string("namespace", findings);
    if !namespace.is_empty() && !is_dns_label(namespace) {
        let got = fields::excerpt(&namespace.into());
        findings.error("metadata.namespace", format_args!("must be a DNS-1123 label, got {got}"));
    }
    Some((name.to_owned(), (!namespace.is_empty()).then(|| namespace.to_owned())))
}

/// Returns true for 1 to 63 lower-case letters, digits and `-`, with a letter or digit at both ends
/// (RFC 1123 label as in Kubernetes).
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label(text)
}

/// Returns true for such labels separated by dots, at most 253 bytes in total. As in Kubernetes, a
/// single label may be longer than 63 bytes here.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

fn read(document: &Value, findings: &mut Findings) -> Option<WorkloadGroup> {
    if !document.is_object() {
        findings.error("kind", "expected WorkloadGroup, got none");
        return None;
    }
    let document = Object::new(document, "", findings)?;
    check_kind(&document, "WorkloadGroup", findings);
    let names = names(&document, findings);
    let spec = document.object("spec", findings);
    let (mut labels, mut annotations) = (BTreeMap::new(), BTreeMap::new());
    let mut probe = None;
    if let Some(spec) = &spec {
        spec.warn_unknown(&["metadata", "template", "probe"], findings);
        if let Some(metadata) = spec.object("metadata", findings) {
            metadata.warn_unknown(&["labels", "annotations"], findings);
            labels = metadata.string_map("labels", findings);
            annotations = metadata.string_map("annotations", findings);
        }
        probe = spec.value("probe").and_then(|value| WorkloadProbe::read(value, findings));
    }
    let template = template(spec.and_then(|spec| spec.object("template", findings)), findings);
    let (name, namespace) = names?;
    Some(WorkloadGroup { name, namespace, labels, annotations, template, probe })
}

fn template(fields: Option<Object>, findings: &mut Findings) -> WorkloadTemplate {
    let Some(fields) = fields else {
        return WorkloadTemplate { weight: 1, ..WorkloadTemplate::default() };
    };
    fields.warn_unknown(&["ports", "labels", "serviceAccount", "network", "locality", "weight"], findings);
    let named = |name, findings: &mut Findings| {
        let text = fields.string(name, findings);
        (!text.is_empty()).then(|| text.to_owned())
    };
    WorkloadTemplate {
        ports: fields.port_map("ports", findings),
        labels: fields.string_map("labels", findings),
        service_account: named("serviceAccount", findings),
        network: named("network", findings),
        locality: named("locality", findings),
        weight: fields.int32("weight", 1, findings),
    }
}

#[cfg(test)]
mod tests;
