//! The kinds of objects with Pods, and where in an object the Pod template is.

use std::borrow::Cow;
use std::str::FromStr;

/// What the injector does with a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub kind: Cow<'static, str>,
    /// The API group; any version of it. `None` is any group.
    pub group: Option<Cow<'static, str>>,
    pub template: Template,
    /// Fields without which the API server rejects an object of this kind.
    pub required: Required,
    /// True if the Pods run until their work is done.
    pub job: bool,
    /// True if a flag names the template.
    pub of_flag: bool,
}

/// The Pod or Pod template of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    /// The field with the Pod template; empty if the object is a Pod.
    At(Vec<Cow<'static, str>>),
    /// The kind has a Pod template that must not be changed: the reason with advice.
    Unchangeable(&'static str),
}

/// The fields that the API server requires besides a container with an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Required {
    Nothing,
    /// `spec.selector`, and the labels in the template that it selects.
    Selector,
    /// The labels in the template, which are the default of the selector.
    Labels,
    /// `restartPolicy` in the template.
    RestartPolicy,
    /// `spec.schedule`, and `restartPolicy` in the template.
    Schedule,
}

const KNATIVE: &str =
    "Knative validates and rewrites the template itself; inject the Pods through the webhook";

/// Kind, API group, field with the Pod template, and required fields.
const TABLE: [(&str, &str, &str, Required); 14] = [
    ("Pod", "", "", Required::Nothing),
    ("PodTemplate", "", "template", Required::Nothing),
    ("ReplicationController", "", "spec.template", Required::Labels),
    ("Deployment", "apps", "spec.template", Required::Selector),
    ("StatefulSet", "apps", "spec.template", Required::Selector),
    ("DaemonSet", "apps", "spec.template", Required::Selector),
    ("ReplicaSet", "apps", "spec.template", Required::Selector),
    ("Job", "batch", "spec.template", Required::RestartPolicy),
    ("CronJob", "batch", "spec.jobTemplate.spec.template", Required::Schedule),
    ("Rollout", "argoproj.io", "spec.template", Required::Selector),
    ("DeploymentConfig", "apps.openshift.io", "spec.template", Required::Labels),
    ("CloneSet", "apps.kruise.io", "spec.template", Required::Selector),
    ("StatefulSet", "apps.kruise.io", "spec.template", Required::Selector),
    ("DaemonSet", "apps.kruise.io", "spec.template", Required::Selector),
];
/// Kinds whose Pod template must not be changed.
const UNCHANGEABLE: [(&str, &str, &str); 3] = [
    ("Service", "serving.knative.dev", KNATIVE),
    ("Configuration", "serving.knative.dev", KNATIVE),
    ("Revision", "serving.knative.dev", KNATIVE),
];

/// A kind that a user names in `--template-path`: `Kind=spec.template` or
/// `Kind.group=spec.template`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatePath {
    kind: String,
    group: Option<String>,
    path: Vec<String>,
}

impl FromStr for TemplatePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "must be like Game=spec.template or Game.example.com=spec.template";
        let (name, path) = text.split_once('=').ok_or(example)?;
        let (kind, group) = match name.split_once('.') {
            Some((kind, group)) => (kind, Some(group)),
            None => (name, None),
        };
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_word(kind) {
            return Err(format!("{kind:?} is not a kind: {example}"));
        }
        if let Some(group) = group.filter(|group| group.contains('/') || group.split('.').any(str::is_empty))
        {
            return Err(format!("{group:?} is not an API group: write it without version, {example}"));
        }
        let path: Vec<String> = path.trim_start_matches('.').split('.').map(str::to_owned).collect();
        if let Some(step) = path.iter().find(|step| !is_word(step)) {
            return Err(format!("{step:?} is not the name of a field: {example}"));
        }
        let ends_below = path.ends_with(&["template".into(), "spec".into()]);
        if ends_below || path.last().is_some_and(|step| step == "containers") {
            return Err(
                "must be the field with metadata and spec of the Pod, such as spec.template".to_owned()
            );
        }
        Ok(Self { kind: kind.to_owned(), group: group.map(str::to_owned), path })
    }
}

/// All kinds that the commands know.
#[derive(Clone, Debug)]
pub struct Kinds(Vec<Kind>);

impl Default for Kinds {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Kinds {
    /// Returns the kinds of the table and those of the flag, which replace a kind of the table.
    pub fn new(paths: &[TemplatePath]) -> Self {
        let mut kinds: Vec<Kind> = paths.iter().map(Kind::of_flag).collect();
        kinds.extend(TABLE.iter().map(|(kind, group, path, required)| Kind {
            kind: Cow::Borrowed(kind),
            group: Some(Cow::Borrowed(group)),
            template: Template::At(
                path.split('.').filter(|step| !step.is_empty()).map(Cow::Borrowed).collect(),
            ),
            required: *required,
            job: *group == "batch",
            of_flag: false,
        }));
        kinds.extend(UNCHANGEABLE.iter().map(|(kind, group, reason)| Kind {
            kind: Cow::Borrowed(kind),
            group: Some(Cow::Borrowed(group)),
            template: Template::Unchangeable(reason),
            required: Required::Nothing,
            job: false,
            of_flag: false,
        }));
        Self(kinds)
    }

    /// Returns what is known about a kind: an entry for each Pod template that it has.
    pub(crate) fn find(&self, kind: &str, version: &str) -> Vec<&Kind> {
        let group = group_of(version);
        let is_match =
            |known: &&Kind| known.kind == kind && known.group.as_ref().is_none_or(|of| of == group);
        let mut found: Vec<&Kind> = self.0.iter().filter(is_match).collect();
        // Flags may name several templates of a kind, and replace that of the table.
        if found.iter().any(|known| known.of_flag) {
            found.retain(|known| known.of_flag);
        }
        found
    }

    pub(crate) fn contains(&self, kind: &str, version: &str) -> bool {
        !self.find(kind, version).is_empty()
    }
}

impl Kind {
    /// Returns the field with the Pod template, if a flag names it.
    pub(crate) fn named(&self) -> Option<String> {
        match &self.template {
            Template::At(path) if self.of_flag => Some(path.join(".")),
            _ => None,
        }
    }

    fn of_flag(path: &TemplatePath) -> Self {
        Self {
            kind: Cow::Owned(path.kind.clone()),
            group: path.group.clone().map(Cow::Owned),
            template: Template::At(path.path.iter().cloned().map(Cow::Owned).collect()),
            required: Required::Nothing,
            job: false,
            of_flag: true,
        }
    }
}

/// Returns the API group of an `apiVersion`.
pub fn group_of(version: &str) -> &str {
    version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// Returns true for the API groups of Kubernetes that have, or had, kinds with Pods. A kind of
/// another group is another kind, even if it has the same name.
pub fn is_group_of_kubernetes(group: &str) -> bool {
    ["", "apps", "batch", "extensions"].contains(&group)
}

/// Returns the `apiVersion` of a kind of Kubernetes that has Pods, and the kind as Kubernetes
/// writes it.
pub fn api_version(kind: &str) -> Option<(&'static str, String)> {
    let mut known = TABLE.iter().filter(|(_, group, ..)| is_group_of_kubernetes(group));
    let (kind, group, ..) = *known.find(|(known, ..)| known.eq_ignore_ascii_case(kind))?;
    Some((kind, if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") }))
}

#[cfg(test)]
mod tests;
