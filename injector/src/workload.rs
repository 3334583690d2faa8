//! Finds the Pods in a Kubernetes object: the Pod itself, the Pod template of a workload, the items
//! of a list.

use std::borrow::Cow;

use serde_json::Value;

use crate::kinds::{Kind, Kinds, Template};
use crate::{InvalidPod, PodContext, pod};

/// The location of a Pod or Pod template in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLocation {
    /// The object that contains the Pod, for example `Deployment/shop`.
    pub object: String,
    /// The namespace of the object; empty if it is not set.
    pub namespace: String,
    /// True if a Job creates the Pods.
    pub job: bool,
    /// The path from the object to the Pod.
    path: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(Cow<'static, str>),
    Item(usize),
}

impl PodLocation {
    /// Returns the location of an object that itself stands for its Pod, for errors about it.
    pub fn of_object(document: &Value) -> Self {
        let metadata = pod::field(document, "metadata").unwrap_or(&Value::Null);
        Self {
            object: object(document),
            namespace: pod::text(metadata, "namespace").to_owned(),
            job: false,
            path: Vec::new(),
        }
    }

    pub fn pod<'a>(&self, document: &'a Value) -> &'a Value {
        self.path.iter().fold(document, |value, step| match step {
            Step::Key(key) => &value[key.as_ref()],
            Step::Item(index) => &value["items"][*index],
        })
    }

    pub fn pod_mut<'a>(&self, document: &'a mut Value) -> &'a mut Value {
        self.path.iter().fold(document, |value, step| match step {
            Step::Key(key) => &mut value[key.as_ref()],
            Step::Item(index) => &mut value["items"][*index],
        })
    }

    /// Returns the attributes of the Pod that its object defines.
    pub fn context<'a>(&'a self, document: &'a Value) -> PodContext<'a> {
        let spec = pod::field(self.object_in(document), "spec").unwrap_or(&Value::Null);
        let claims = pod::list(spec, "volumeClaimTemplates");
        PodContext { namespace: &self.namespace, job: self.job, claims }
    }

    /// Returns the object that contains the Pod: the document, or an item of a list.
    pub fn object_in<'a>(&self, document: &'a Value) -> &'a Value {
        let items = self.path.iter().map_while(|step| match step {
            Step::Item(index) => Some(*index),
            Step::Key(_) => None,
        });
        items.fold(document, |value, index| &value["items"][index])
    }

    /// Returns the objects that contain the Pod template, from the outermost: the object, and for
    /// example the Job template of a CronJob; each with its path in the object. A Pod has none.
    pub fn objects_above<'a>(&self, document: &'a Value) -> Vec<(String, &'a Value)> {
        let keys = self.path.iter().skip_while(|step| matches!(step, Step::Item(_)));
        let keys: Vec<&Step> = keys.collect();
        let mut value = self.object_in(document);
        let mut objects = Vec::new();
        for (index, step) in keys.iter().enumerate() {
            if value.get("metadata").is_some_and(Value::is_object) {
                let path = keys.iter().take(index).map(|step| (*step).clone()).collect::<Vec<_>>();
                objects.push((dotted(&path), value));
            }
            if let Step::Key(key) = step {
                value = &value[key.as_ref()];
            }
        }
        objects
    }

    /// Converts a field of the Pod to a field of the object: `spec.template.metadata`.
    pub fn template_field(&self, field: &str) -> String {
        let items = self.path.iter().take_while(|step| matches!(step, Step::Item(_))).count();
        join(dotted(&self.path[items..]), field)
    }

    /// Converts a field of the object to a field of the document: `items[3].metadata.name`.
    pub fn object_field(&self, field: &str) -> String {
        let items = self.path.iter().take_while(|step| matches!(step, Step::Item(_))).count();
        join(dotted(&self.path[..items]), field)
    }

    /// Converts a field of the Pod to a field of the document:
    /// `items[3].spec.template.spec.containers`.
    pub fn field(&self, field: &str) -> String {
        join(dotted(&self.path), field)
    }
}

fn join(mut path: String, field: &str) -> String {
    if !path.is_empty() && !field.is_empty() {
        path.push('.');
    }
    path + field
}

fn dotted(path: &[Step]) -> String {
    let steps = path.iter().map(|step| match step {
        Step::Key(key) => key.to_string(),
        Step::Item(index) => format!("items[{index}]"),
    });
    steps.collect::<Vec<_>>().join(".")
}

/// Returns the kind and name of an object: `Deployment/shop`, `Deployment` without a name, empty
/// without a kind.
pub fn object(document: &Value) -> String {
    let kind = pod::text(document, "kind");
    let metadata = pod::field(document, "metadata").unwrap_or(&Value::Null);
    match (pod::name(metadata), pod::text(metadata, "generateName")) {
        ("", "") => kind.to_owned(),
        ("", name) | (name, _) => format!("{kind}/{name}"),
    }
}

/// A workload without Pod template, or a list whose items are malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedObject {
    /// The location as in [`PodLocation::of_object`], with the name and namespace of the object.
    pub location: PodLocation,
    /// The field is a path in the document.
    pub error: InvalidPod,
}

/// Returns every Pod of an object, or the error of a workload without Pod template, or of a malformed
/// list; nothing if its kind contains no Pods.
pub fn locate_pods(document: &Value, kinds: &Kinds) -> Vec<Result<PodLocation, MalformedObject>> {
    let mut sites = Vec::new();
    for object in objects_of(document, kinds) {
        match object {
            Ok(object) => sites.extend(object.pods(kinds)),
            Err(malformed) => sites.push(Err(malformed)),
        }
    }
    sites
}

/// Returns the location of the object itself, or of each item of a list; see
/// [`PodLocation::of_object`].
pub fn locate_objects(document: &Value, kinds: &Kinds) -> Vec<PodLocation> {
    objects_of(document, kinds).iter().flatten().map(Object::location).collect()
}

/// An object of a document: the document itself, or an item of a list.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    pub value: &'a Value,
    pub kind: &'a str,
    pub version: &'a str,
    path: Vec<Step>,
}

impl Object<'_> {
    /// Returns the path of a field of the object in the document.
    pub(crate) fn field(&self, field: &str) -> String {
        join(dotted(&self.path), field)
    }

    /// Returns true if the object is in a list.
    pub(crate) fn is_item(&self) -> bool {
        !self.path.is_empty()
    }

    pub(crate) fn location(&self) -> PodLocation {
        let object = object_of(self.kind, self.value);
        PodLocation { object, path: self.path.clone(), ..PodLocation::of_object(self.value) }
    }

    /// Returns what is known about the kind of the object. If it has several templates, those that the
    /// object lacks are left out, unless it lacks all.
    pub(crate) fn templates<'a>(&self, kinds: &'a Kinds) -> Vec<&'a Kind> {
        let mut known = kinds.find(self.kind, self.version);
        let is_there = |kind: &Kind| match &kind.template {
            Template::At(path) => {
                path.iter().try_fold(self.value, |value, key| pod::field(value, key)).is_some()
            }
            Template::Unchangeable(_) => true,
        };
        if known.iter().any(|kind| is_there(kind)) {
            known.retain(|kind| is_there(kind));
        }
        known
    }

    /// Returns the locations of the Pod templates.
    pub(crate) fn pods(&self, kinds: &Kinds) -> Vec<Result<PodLocation, MalformedObject>> {
        self.templates(kinds).into_iter().filter_map(|kind| self.pod(kind)).collect()
    }

    /// Returns the location of the Pod template; `None` if the kind has none that can be changed.
    fn pod(&self, kind: &Kind) -> Option<Result<PodLocation, MalformedObject>> {
        let Template::At(template) = &kind.template else { return None };
        let mut site = PodLocation { job: kind.job, ..self.location() };
        let mut place = self.value;
        for key in template {
            site.path.push(Step::Key(key.clone()));
            match place.get(key.as_ref()).filter(|value| value.is_object()) {
                Some(value) => place = value,
                None => {
                    let error = InvalidPod { field: dotted(&site.path), reason: "must be a mapping" };
                    let location = PodLocation { path: Vec::new(), ..site };
                    return Some(Err(MalformedObject { location, error }));
                }
            }
        }
        Some(Ok(site))
    }
}

/// Returns the document, or the items of a list, also of a list of one kind, such as a `PodList`.
pub(crate) fn objects_of<'a>(document: &'a Value, kinds: &Kinds) -> Vec<Result<Object<'a>, MalformedObject>> {
    let kind = (pod::text(document, "kind"), pod::text(document, "apiVersion"));
    let mut objects = Vec::new();
    collect(document, kind, kinds, &mut Vec::new(), &mut objects);
    objects
}

fn collect<'a>(
    value: &'a Value,
    (kind, version): (&'a str, &'a str),
    kinds: &Kinds,
    path: &mut Vec<Step>,
    objects: &mut Vec<Result<Object<'a>, MalformedObject>>,
) {
    // Other kinds may end in List, too.
    let of_items = kind.strip_suffix("List").filter(|of| of.is_empty() || kinds.contains(of, version));
    let Some(of_items) = of_items else {
        return objects.push(Ok(Object { value, kind, version, path: path.clone() }));
    };
    let malformed = |path: &[Step], rest: &str, reason| {
        let error = InvalidPod { field: join(dotted(path), rest), reason };
        Err(MalformedObject { location: PodLocation::of_object(value), error })
    };
    let items = match pod::field(value, "items") {
        None => return,
        Some(Value::Array(items)) => items,
        Some(_) => return objects.push(malformed(path, "items", "must be a list")),
    };
    for (index, item) in items.iter().enumerate() {
        if !item.is_object() {
            objects.push(malformed(path, &format!("items[{index}]"), "must be a mapping"));
            continue;
        }
        // In a list of one kind, the items may omit kind and version.
        let own =
            |key, default| Some(pod::text(item, key)).filter(|text| !text.is_empty()).unwrap_or(default);
        path.push(Step::Item(index));
        collect(item, (own("kind", of_items), own("apiVersion", version)), kinds, path, objects);
        path.pop();
    }
}

fn object_of(kind: &str, value: &Value) -> String {
    let name = object(value);
    let name = name.split_once('/').map(|(_, name)| format!("{kind}/{name}"));
    name.unwrap_or_else(|| kind.to_owned())
}

#[cfg(test)]
mod tests;
