//! Decides which documents and items of lists are not whole objects, or not objects that can be
//! injected. Both commands leave them as they are, and name them with the reason.

mod expression;
mod items;
mod partial;
mod unknown_kind;

use std::fmt;

use serde_json::Value;

use crate::kinds::{Kinds, Template};
use crate::{pod, workload};
pub use items::{ManifestPods, SkippedItem};

/// Why a file, a document or an item of a list is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// It contains an expression of a template language.
    Template,
    /// It has no kind or no `apiVersion`.
    NotAnObject,
    /// It cannot be parsed, and does not look like a manifest: the error.
    NotAManifest(String),
    /// A list of operations as in RFC 6902.
    JsonPatch,
    /// The configuration of kustomize.
    Kustomization,
    /// A kustomization refers to the file as a patch: the path of the kustomization.
    ReferencedPatch(String),
    /// A kustomization puts the file into a ConfigMap or Secret: the path of the kustomization.
    ReferencedData(String),
    /// A field is missing that the API server requires, or a field exists only in patches.
    Partial(String),
    /// The Pods of the object are defined in another object.
    DefinedElsewhere(String),
    /// The Pod template of the kind must not be changed: the kind and the reason with advice.
    Unchangeable(String, &'static str),
    /// A kind of Kubernetes that does not exist in the `apiVersion` of the document.
    WrongVersion { kind: &'static str, version: String },
    /// An unknown kind that contains Pod templates.
    UnknownKind {
        /// The kind with its group, such as `Game.example.com`.
        kind: String,
        /// The field with the first Pod template, such as `spec.template`.
        field: String,
        /// True if the flag `--template-path` can name the field.
        can_be_named: bool,
    },
    /// A Pod template beside those that `--template-path` names, as in `UnknownKind`.
    Unnamed { kind: String, field: String, can_be_named: bool },
    /// An unknown kind that contains a probe, but no Pod template.
    UnknownProbe { kind: String, field: String },
}

/// What to do about Pods that cannot be injected in the object that defines them.
const THROUGH_WEBHOOK: &str = "inject the Pods through the webhook";

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Template => formatter.write_str("a template; use the output of helm template"),
            Self::NotAnObject => formatter.write_str("not a Kubernetes object: it needs apiVersion and kind"),
            Self::NotAManifest(error) => write!(formatter, "not a Kubernetes manifest: {error}"),
            Self::JsonPatch => formatter.write_str("a JSON patch; use the output of kustomize build"),
            Self::Kustomization => {
                formatter.write_str("a configuration of kustomize; use the output of kustomize build")
            }
            Self::ReferencedPatch(file) => {
                write!(formatter, "a patch of {file}; use the output of kustomize build")
            }
            Self::ReferencedData(file) => write!(formatter, "content of a ConfigMap or Secret of {file}"),
            Self::Partial(why) => {
                write!(formatter, "not a whole object: {why}; use the output of kustomize build")
            }
            Self::DefinedElsewhere(object) => {
                write!(formatter, "its Pods are defined in {object}, to which spec.workloadRef refers")
            }
            Self::Unchangeable(kind, reason) => write!(formatter, "{kind}: {reason}"),
            Self::WrongVersion { kind, version } => {
                write!(formatter, "wrong apiVersion or kind: Kubernetes has a {kind} in {version}")
            }
            Self::UnknownKind { kind, field, can_be_named: true } => write!(
                formatter,
                "the kind is not known; if its Pods are created from {field}, use --template-path {kind}={field}"
            ),
            Self::UnknownKind { kind, field, .. } => {
                write!(formatter, "the kind {kind} is not known, and {field} is in a list; {THROUGH_WEBHOOK}")
            }
            Self::Unnamed { kind, field, can_be_named: true } => {
                write!(formatter, "no flag names this Pod template; use --template-path {kind}={field} too")
            }
            Self::Unnamed { .. } => {
                write!(formatter, "no flag can name this Pod template in a list; {THROUGH_WEBHOOK}")
            }
            Self::UnknownProbe { kind, field } => {
                write!(
                    formatter,
                    "the kind {kind} is not known, so {field} is not changed; {THROUGH_WEBHOOK}"
                )
            }
        }
    }
}

impl Skip {
    /// Returns why a whole document is left as it is; `text` are its bytes. Single items of a list
    /// are in [`ManifestPods::skipped`].
    pub fn of(document: &Value, text: &str, kinds: &Kinds) -> Option<Self> {
        match document {
            Value::Null => return None,
            Value::Object(_) => {}
            Value::Array(elements) if partial::is_json_patch(elements) => return Some(Self::JsonPatch),
            _ => return Some(Self::NotAnObject),
        }
        let (kind, version) = (pod::text(document, "kind"), pod::text(document, "apiVersion"));
        if kind.is_empty() || version.is_empty() {
            return Some(Self::NotAnObject);
        }
        if version.starts_with("kustomize.config.k8s.io/") {
            return Some(Self::Kustomization);
        }
        let objects = workload::objects_of(document, kinds);
        let has_pods = |object: &workload::Object| kinds.contains(object.kind, object.version);
        if objects.iter().flatten().any(has_pods) && expression::is_in_comment(text) {
            return Some(Self::Template);
        }
        let object = objects.iter().flatten().find(|object| !object.is_item())?;
        of_object(object, kinds)
    }
}

fn of_object(object: &workload::Object, kinds: &Kinds) -> Option<Skip> {
    if !kinds.contains(object.kind, object.version) {
        return unknown_kind::find(object);
    }
    if expression::is_in_fields(object.value) {
        return Some(Skip::Template);
    }
    if let Some(object) = workload_ref(object.value) {
        return Some(Skip::DefinedElsewhere(object));
    }
    object.templates(kinds).into_iter().find_map(|kind| match &kind.template {
        Template::Unchangeable(reason) => Some(Skip::Unchangeable(workload::object(object.value), reason)),
        Template::At(_) => partial::missing(object.value, kind).map(Skip::Partial),
    })
}

/// Returns the object that an Argo Rollout takes the Pod template from.
fn workload_ref(object: &Value) -> Option<String> {
    let reference = pod::field(pod::field(object, "spec")?, "workloadRef")?;
    match (pod::text(reference, "kind"), pod::name(reference)) {
        ("", _) | (_, "") => None,
        (kind, name) => Some(format!("{kind}/{name}")),
    }
}

#[cfg(test)]
mod tests;
