//! Rules of Kubernetes about a whole Pod that an added container or annotation can violate.

mod declared;
mod pod_level;
mod qos;
mod quantity;
mod requests;
mod security_context;

use serde_json::Value;

use crate::pod;
use crate::settings::Settings;
use crate::warning::{Code, Warning};

/// The maximum size of all annotations of an object together, in bytes.
const ANNOTATIONS_BYTES: usize = 256 << 10;

/// Adapts a Pod to the containers that were added to it. Returns warnings about what changes for the
/// user.
///
/// # Errors
/// Returns a warning if Kubernetes would reject the Pod or never start the sidecar.
pub(super) fn satisfy(
    original: &Value,
    changed: &mut Value,
    settings: &Settings,
) -> Result<Option<Warning>, Warning> {
    let template = &settings.template;
    let containers = template.containers.iter().chain(&template.init_containers);
    let mut added: Vec<&str> = containers.map(pod::name).collect();
    added.push(&settings.sidecar_name);
    security_context::check(&changed["spec"], &added)?;
    let (before, after) = (&original["spec"], &mut changed["spec"]);
    declared::fit(before, after, &settings.sidecar_name);
    qos::guarantee(before, after, &added, &settings.sidecar_name);
    pod_level::fit(before, after)?;
    Ok(qos::change(before, after, &settings.sidecar_name))
}

/// Returns the warning about annotations that have become too large.
pub(super) fn check_annotations(original: &Value, changed: &Value) -> Result<(), Warning> {
    if bytes_of_annotations(changed) <= ANNOTATIONS_BYTES
        || bytes_of_annotations(original) > ANNOTATIONS_BYTES
    {
        return Ok(());
    }
    let text = format!("metadata.annotations: would exceed {} KiB", ANNOTATIONS_BYTES >> 10);
    Err(Warning::about_pod(Code::AnnotationSize, text).at("metadata.annotations"))
}

fn bytes_of_annotations(pod: &Value) -> usize {
    let annotations = pod::field(pod, "metadata").and_then(|metadata| pod::field(metadata, "annotations"));
    let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
    annotations.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}

#[cfg(test)]
mod tests;
