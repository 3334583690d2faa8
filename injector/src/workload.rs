//! Finds the Pods in a Kubernetes object: the Pod itself, the Pod template of a workload, the items
//! of a list.

use serde_json::Value;

use crate::{InvalidPod, pod};

/// Kind, API group (any version), and path of the Pod template.
const KINDS: [(&str, &str, &[&str]); 9] = [
    ("Pod", "", &[]),
    ("PodTemplate", "", &["template"]),
    ("ReplicationController", "", &["spec", "template"]),
    ("Deployment", "apps", &["spec", "template"]),
    ("StatefulSet", "apps", &["spec", "template"]),
    ("DaemonSet", "apps", &["spec", "template"]),
    ("ReplicaSet", "apps", &["spec", "template"]),
    ("Job", "batch", &["spec", "template"]),
    ("CronJob", "batch", &["spec", "jobTemplate", "spec", "template"]),
];

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
    Key(&'static str),
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
            Step::Key(key) => &value[*key],
            Step::Item(index) => &value["items"][*index],
        })
    }

    pub fn pod_mut<'a>(&self, document: &'a mut Value) -> &'a mut Value {
        self.path.iter().fold(document, |value, step| match step {
            Step::Key(key) => &mut value[*key],
            Step::Item(index) => &mut value["items"][*index],
        })
    }

    /// Returns the object that contains the Pod: the document, or an item of a list.
    pub fn object_in<'a>(&self, document: &'a Value) -> &'a Value {
        let items = self.path.iter().map_while(|step| match step {
            Step::Item(index) => Some(*index),
            Step::Key(_) => None,
        });
        items.fold(document, |value, index| &value["items"][index])
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
        Step::Key(key) => (*key).to_owned(),
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

/// Returns every Pod of an object; none if its kind contains no Pods.
///
/// # Errors
/// Fails if a workload has no Pod template, or the items of a list are malformed.
pub fn find_pods(document: &Value) -> Result<Vec<PodLocation>, InvalidPod> {
    locate_pods(document).into_iter().map(|site| site.map_err(|malformed| malformed.error)).collect()
}

/// Like [`find_pods`], with the other Pods of a list if one object in it is malformed.
pub fn locate_pods(document: &Value) -> Vec<Result<PodLocation, MalformedObject>> {
    let mut sites = Vec::new();
    let (kind, version) = (pod::text(document, "kind"), pod::text(document, "apiVersion"));
    collect(document, kind, version, &mut Vec::new(), &mut sites);
    sites
}

/// Returns the location of the object itself, or of each item of a `List`; see
/// [`PodLocation::of_object`].
pub fn locate_objects(document: &Value) -> Vec<PodLocation> {
    fn collect(value: &Value, path: &mut Vec<Step>, found: &mut Vec<PodLocation>) {
        if pod::text(value, "kind") != "List" {
            return found.push(PodLocation { path: path.clone(), ..PodLocation::of_object(value) });
        }
        for (index, item) in pod::list(value, "items").iter().enumerate() {
            path.push(Step::Item(index));
            collect(item, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    collect(document, &mut Vec::new(), &mut found);
    found
}

/// Returns the `apiVersion` of a kind that contains Pods, and the kind as Kubernetes writes it.
pub fn api_version(kind: &str) -> Option<(&'static str, String)> {
    let (kind, group, _) = *KINDS.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(kind))?;
    Some((kind, if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") }))
}

fn collect(
    value: &Value,
    kind: &str,
    version: &str,
    path: &mut Vec<Step>,
    sites: &mut Vec<Result<PodLocation, MalformedObject>>,
) {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    if let Some(of_items) =
        kind.strip_suffix("List").filter(|of| of.is_empty() || template_path(of, group).is_some())
    {
        return items(value, (of_items, version), path, sites);
    }
    let Some(template) = template_path(kind, group) else { return };
    let metadata = pod::field(value, "metadata").unwrap_or(&Value::Null);
    let mut site = PodLocation {
        object: object_of(kind, value),
        namespace: pod::text(metadata, "namespace").to_owned(),
        job: matches!(kind, "Job" | "CronJob"),
        path: path.clone(),
    };
    let mut place = value;
    for key in template {
        site.path.push(Step::Key(key));
        match place.get(*key).filter(|value| value.is_object()) {
            Some(value) => place = value,
            None => {
                let error = InvalidPod { field: dotted(&site.path), reason: "must be a mapping" };
                let location = PodLocation { path: Vec::new(), ..site };
                return sites.push(Err(MalformedObject { location, error }));
            }
        }
    }
    sites.push(Ok(site));
}

fn object_of(kind: &str, value: &Value) -> String {
    let name = object(value);
    let name = name.split_once('/').map(|(_, name)| format!("{kind}/{name}"));
    name.unwrap_or_else(|| kind.to_owned())
}

/// Reads the items of a list. In a list of one kind, the items may omit kind and version.
fn items(
    value: &Value,
    (kind, version): (&str, &str),
    path: &mut Vec<Step>,
    sites: &mut Vec<Result<PodLocation, MalformedObject>>,
) {
    let malformed = |path: &[Step], rest: &str, reason| {
        let error = InvalidPod { field: join(dotted(path), rest), reason };
        Err(MalformedObject { location: PodLocation::of_object(value), error })
    };
    let items = match pod::field(value, "items") {
        None => return,
        Some(Value::Array(items)) => items,
        Some(_) => return sites.push(malformed(path, "items", "must be a list")),
    };
    for (index, item) in items.iter().enumerate() {
        if !item.is_object() {
            sites.push(malformed(path, &format!("items[{index}]"), "must be a mapping"));
            continue;
        }
        let own =
            |key, default| Some(pod::text(item, key)).filter(|text| !text.is_empty()).unwrap_or(default);
        path.push(Step::Item(index));
        collect(item, own("kind", kind), own("apiVersion", version), path, sites);
        path.pop();
    }
}

fn template_path(kind: &str, group: &str) -> Option<&'static [&'static str]> {
    KINDS.iter().find(|(known, of, _)| *known == kind && *of == group).map(|(_, _, template)| *template)
}

#[cfg(test)]
mod tests;
