//! The URL paths on which probes and lifecycle hooks arrive.

use std::fmt;

use serde::{Deserialize, Serialize};

enum_table::table! {
    /// The kind of a container's probe or lifecycle hook. In JSON, it is the kind in lower case.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ProbeKind(
        /// Returns the last segment of the path, which is also the label `kind` of the metrics.
        word: &'static str,
        /// Returns the prefix of the path.
        prefix: &'static str,
        /// Returns the field of a container, or of its `lifecycle` for a hook.
        field: &'static str,
    ) {
        /// The container's `livenessProbe`.
        Liveness("livez", "/app-health/", "livenessProbe"),
        /// The container's `readinessProbe`.
        Readiness("readyz", "/app-health/", "readinessProbe"),
        /// The container's `startupProbe`.
        Startup("startupz", "/app-health/", "startupProbe"),
        /// The container's `lifecycle.preStop`.
        PreStop("prestopz", "/app-lifecycle/", "preStop"),
        /// The container's `lifecycle.postStart`.
        PostStart("poststartz", "/app-lifecycle/", "postStart"),
    }
}

impl ProbeKind {
    /// The probes, in the order of Kubernetes' documentation.
    pub const PROBES: [Self; 3] = [Self::Liveness, Self::Readiness, Self::Startup];
    /// The lifecycle hooks.
    pub const HOOKS: [Self; 2] = [Self::PreStop, Self::PostStart];

    /// Returns kubelet's word for the probe, for example `liveness`, or the field of the hook.
    pub fn name(self) -> &'static str {
        self.field().trim_end_matches("Probe")
    }

    /// Returns true for a lifecycle hook: kubelet treats any HTTP response as success and sets no
    /// timeout.
    pub fn is_hook(self) -> bool {
        matches!(self, Self::PreStop | Self::PostStart)
    }
}

/// The path prefixes of probes and hooks. An undeclared path below them is answered with 404.
pub const PREFIXES: [&str; 2] = ["/app-health/", "/app-lifecycle/"];

/// A path of the form `/app-health/<container>/{livez,readyz,startupz}` or
/// `/app-lifecycle/<container>/{prestopz,poststartz}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbePath {
    container: String,
    kind: ProbeKind,
}

impl ProbePath {
    /// Parses a path byte for byte; returns `None` unless it has one of the two forms. A container
    /// name is 1 to 253 bytes of `A-Za-z0-9._-`.
    pub fn parse(path: &str) -> Option<Self> {
        let (prefix, rest) =
            PREFIXES.iter().find_map(|prefix| Some((*prefix, path.strip_prefix(prefix)?)))?;
        let (container, word) = rest.split_once('/')?;
        let kind = ProbeKind::ALL.into_iter().find(|kind| kind.prefix() == prefix && kind.word() == word)?;
        Self::new(container, kind)
    }

    /// Returns the path of a container's probe or hook; `None` if the container's name is not valid
    /// in a path.
    pub fn new(container: &str, kind: ProbeKind) -> Option<Self> {
        let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let valid = (1..=253).contains(&container.len()) && container.bytes().all(named);
        valid.then(|| Self { container: container.into(), kind })
    }

    /// Returns the container's name.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Returns the kind of the probe or hook.
    pub fn kind(&self) -> ProbeKind {
        self.kind
    }
}

impl fmt::Display for ProbePath {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}{}/{}", self.kind.prefix(), self.container, self.kind.word())
    }
}

#[cfg(test)]
mod tests;
