//! Which object to explain, and the permissions for reading it.

use std::fmt;

use serde::{Serialize, Serializer};

enum_table::table! {
    /// The kinds that can be explained.
    pub enum Kind(
        /// Returns the word in `deployment/web`.
        word: &'static str,
        /// The short name that kubectl accepts.
        short: &'static str,
        /// Returns the API group and the plural, as in URLs and RBAC.
        resource: (&'static str, &'static str),
    ) {
        Pod("pod", "po", ("", "pods")),
        Deployment("deployment", "deploy", ("apps", "deployments")),
        StatefulSet("statefulset", "sts", ("apps", "statefulsets")),
        DaemonSet("daemonset", "ds", ("apps", "daemonsets")),
        ReplicaSet("replicaset", "rs", ("apps", "replicasets")),
        Job("job", "job", ("batch", "jobs")),
    }
}

impl Kind {
    /// Parses the singular, the plural or the short name, in any case, as kubectl does.
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let text = text.split('.').next().unwrap_or_default();
        Self::ALL.into_iter().find(|kind| [kind.word(), kind.resource().1, kind.short()].contains(&text))
    }
}

/// The name of an object: `deployment/web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    pub kind: Kind,
    pub name: String,
}

impl ObjectName {
    /// Parses `KIND/NAME`; a name alone is that of a Pod.
    ///
    /// # Errors
    /// Names the kinds if it is none of them, or the rule of names.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').unwrap_or(("pod", text));
        let kind = Kind::parse(kind).ok_or_else(|| {
            let kinds = Kind::ALL.map(Kind::word).join(", ");
            format!("{kind:?} is not one of {kinds}")
        })?;
        let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
        if name.is_empty() || name.len() > 253 || !name.bytes().all(valid) {
            return Err(format!("{name:?} is not a name: use lower-case letters, digits, '-' and '.'"));
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}/{}", self.kind.word(), self.name)
    }
}

impl Serialize for ObjectName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A rule of RBAC that the user lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    pub api_group: &'static str,
    pub resource: &'static str,
    pub verb: &'static str,
    /// True if a Role in the namespace is enough; else it takes a ClusterRole.
    pub namespaced: bool,
}

impl Rule {
    pub(crate) fn namespaced(api_group: &'static str, resource: &'static str, verb: &'static str) -> Self {
        Self { api_group, resource, verb, namespaced: true }
    }

    pub(crate) fn cluster(api_group: &'static str, resource: &'static str, verb: &'static str) -> Self {
        Self { api_group, resource, verb, namespaced: false }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self { api_group, resource, verb, namespaced } = self;
        let role = if *namespaced { "Role" } else { "ClusterRole" };
        write!(
            formatter,
            "{role}: {{apiGroups: [\"{api_group}\"], resources: [{resource}], verbs: [{verb}]}}"
        )
    }
}

#[cfg(test)]
mod tests;
