//! The template of the sidecar: a partial Pod, read from YAML and validated.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::pod;
use crate::yaml;

pub const SIDECAR_NAME: &str = "app-health-proxy";
/// The image of a declared sidecar that the injector shall complete, as in Istio.
pub const AUTO_IMAGE: &str = "auto";
/// The template that is part of this binary.
const BUILT_IN: &str = include_str!("../../envoy-config/kubernetes/sidecar.yaml");
/// The placeholder for the image in the built-in template.
const BUILT_IN_IMAGE: &str = "app-health:<version>";
/// Variables that only the injector may set.
const RESERVED: [&str; 2] = [super::PROBERS_ENV, super::PROBE_ADDRESS_ENV];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {0}")]
pub struct TemplateError(String);

/// A template that has been validated as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The container of the sidecar, a JSON object with a name.
    pub(super) sidecar: Value,
    pub(super) containers: Vec<Value>,
    pub(super) init_containers: Vec<Value>,
    pub(super) volumes: Vec<Value>,
    pub(super) image_pull_secrets: Vec<Value>,
    pub(super) labels: Map<String, Value>,
    pub(super) annotations: Map<String, Value>,
    /// The first 8 hexadecimal digits of the template's SHA-256.
    pub(super) hash: String,
}

impl Template {
    /// Returns the built-in template; its sidecar gets the name `sidecar_name`.
    pub fn built_in(sidecar_name: &str, image: Option<&str>) -> Result<Self, TemplateError> {
        let mut value = yaml::value(BUILT_IN).map_err(|error| TemplateError(error.to_string()))?;
        let released = format!("app-health:{}", env!("CARGO_PKG_VERSION"));
        for container in
            value.pointer_mut("/spec/containers").and_then(Value::as_array_mut).into_iter().flatten()
        {
            if pod::name(container) == SIDECAR_NAME {
                container["name"] = sidecar_name.into();
            }
            if pod::text(container, "image") == BUILT_IN_IMAGE {
                container["image"] = released.as_str().into();
            }
        }
        Self::checked(value, sidecar_name, image)
    }

    /// Parses a template: a partial Pod with only `metadata.{labels,annotations}` and
    /// `spec.{containers,initContainers,volumes,imagePullSecrets}`. `image` replaces the sidecar's
    /// image.
    pub fn parse(text: &str, sidecar_name: &str, image: Option<&str>) -> Result<Self, TemplateError> {
        let value = yaml::value(text).map_err(|error| TemplateError(error.to_string()))?;
        Self::checked(value, sidecar_name, image)
    }

    fn checked(mut value: Value, sidecar_name: &str, image: Option<&str>) -> Result<Self, TemplateError> {
        only(&value, "", &["metadata", "spec"])?;
        let (metadata, spec) = (&value["metadata"], &value["spec"]);
        only(metadata, "metadata", &["labels", "annotations"])?;
        only(spec, "spec", &["containers", "initContainers", "volumes", "imagePullSecrets"])?;
        no_patch_directive(&value)?;
        if !spec["containers"].is_array() {
            return refuse("spec.containers: must be a list");
        }
        pod::check(&value).map_err(|refused| TemplateError(refused.to_string()))?;
        unique_names(spec)?;
        let is_sidecar = |container: &&Value| pod::name(container) == sidecar_name;
        if pod::list(spec, "containers").iter().filter(is_sidecar).count() != 1 {
            return refuse(&format!(
                "spec.containers: must contain the container {sidecar_name:?} exactly once"
            ));
        }
        for container in value["spec"]["containers"].as_array_mut().into_iter().flatten() {
            if pod::name(container) != sidecar_name {
                continue;
            }
            if let Some(image) = image {
                container["image"] = image.into();
            }
            if matches!(pod::text(container, "image"), "" | AUTO_IMAGE) {
                return refuse(&format!("spec.containers: {sidecar_name:?} needs an image"));
            }
            let reserved =
                pod::list(container, "env").iter().find(|entry| RESERVED.contains(&pod::name(entry)));
            if let Some(entry) = reserved {
                return refuse(&format!("env {:?}: is set by the injector", pod::name(entry)));
            }
        }
        Ok(Self::of(&value, sidecar_name))
    }

    fn of(value: &Value, sidecar_name: &str) -> Self {
        let hash = Sha256::digest(value.to_string());
        let list = |key| pod::list(&value["spec"], key).to_vec();
        let map = |key| value["metadata"][key].as_object().cloned().unwrap_or_default();
        let (sidecar, containers): (Vec<Value>, Vec<Value>) =
            list("containers").into_iter().partition(|container| pod::name(container) == sidecar_name);
        Self {
            sidecar: sidecar.into_iter().next().unwrap_or_default(),
            containers,
            init_containers: list("initContainers"),
            volumes: list("volumes"),
            image_pull_secrets: list("imagePullSecrets"),
            labels: map("labels"),
            annotations: map("annotations"),
            hash: hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

fn refuse<T>(reason: &str) -> Result<T, TemplateError> {
    Err(TemplateError(reason.to_owned()))
}

fn only(value: &Value, place: &str, known: &[&str]) -> Result<(), TemplateError> {
    let at = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match value {
        Value::Null => Ok(()),
        Value::Object(fields) => match fields.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => refuse(&format!("{}: only {} are allowed", at(key), known.join(", "))),
        },
        _ => refuse(&format!("{place}: must be a mapping")),
    }
}

fn no_patch_directive(value: &Value) -> Result<(), TemplateError> {
    match value {
        Value::Object(fields) => match fields.keys().find(|key| key.starts_with("$")) {
            Some(key) => refuse(&format!("{key}: patch directives are not supported")),
            None => fields.values().try_for_each(no_patch_directive),
        },
        Value::Array(elements) => elements.iter().try_for_each(no_patch_directive),
        _ => Ok(()),
    }
}

fn unique_names(spec: &Value) -> Result<(), TemplateError> {
    for keys in [["containers", "initContainers"].as_slice(), &["volumes"]] {
        let mut names = BTreeSet::new();
        for element in keys.iter().flat_map(|key| pod::list(spec, key)) {
            let name = pod::name(element);
            if name.is_empty() || !names.insert(name) {
                return refuse(&format!("spec.{}: name {name:?} must be set and unique", keys[0]));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
