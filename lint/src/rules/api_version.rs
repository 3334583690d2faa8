//! The rule about workloads in an `apiVersion` in which Kubernetes does not have them.

use injector::kinds::{self, Kinds};
use injector::pod;
use injector::warning::quote;
use injector::workload::{self, PodLocation};
use serde_json::Value;

use crate::finding::Findings;
use crate::rule::API_VERSION;

/// Returns the objects whose kind and `apiVersion` do not match.
pub(crate) fn wrong_objects(document: &Value, kinds: &Kinds) -> Vec<PodLocation> {
    let objects = workload::locate_objects(document, kinds).into_iter();
    objects.filter(|location| problem(location.object_in(document)).is_some()).collect()
}

pub(crate) fn check(document: &Value, location: &PodLocation, findings: &mut Findings) {
    if let Some((field, message)) = problem(location.object_in(document)) {
        findings.add_object(&API_VERSION, field, message);
    }
}

/// Returns the field that is wrong, and the message.
fn problem(object: &Value) -> Option<(&'static str, String)> {
    let found = pod::text(object, "kind");
    // Other tools have files with a kind, too.
    if !pod::field(object, "metadata").is_some_and(Value::is_object) {
        return None;
    }
    let (kind, version) = kinds::api_version(found)?;
    let declared = pod::text(object, "apiVersion");
    if !kinds::is_group_of_kubernetes(kinds::group_of(declared)) {
        return None;
    }
    if declared.is_empty() {
        return Some(("kind", format!("apiVersion is missing: that of a {kind} is {version}")));
    }
    if declared != version {
        let text = format!("apiVersion = {}: that of a {kind} is {version}", quote(&declared.into()));
        return Some(("apiVersion", text));
    }
    (found != kind).then(|| ("kind", format!("kind = {}: must be {kind}", quote(&found.into()))))
}
