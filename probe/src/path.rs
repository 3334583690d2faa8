//! The paths on which probes and lifecycle hooks arrive.

use std::fmt;

/// Which of a container's probes or hooks a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// livenessProbe
    Livez,
    /// readinessProbe
    Readyz,
    /// startupProbe
    Startupz,
    /// lifecycle.preStop
    Prestopz,
    /// lifecycle.postStart
    Poststartz,
}

impl ProbeKind {
    /// The last segment of the path, which is also the label `kind` of the metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Livez => "livez",
            Self::Readyz => "readyz",
            Self::Startupz => "startupz",
            Self::Prestopz => "prestopz",
            Self::Poststartz => "poststartz",
        }
    }

    /// Lifecycle hooks: any HTTP answer is a success to kubelet, and it sets no timeout.
    pub fn is_hook(self) -> bool {
        matches!(self, Self::Prestopz | Self::Poststartz)
    }
}

/// Paths below these prefixes belong to probes: what is not declared there is answered 404 in place.
pub const PREFIXES: [&str; 2] = ["/app-health/", "/app-lifecycle/"];

/// `/app-health/<container>/{livez,readyz,startupz}` or `/app-lifecycle/<container>/{prestopz,poststartz}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbePath {
    container: String,
    kind: ProbeKind,
}

impl ProbePath {
    /// Parses a path byte for byte; `None` for anything but the two forms. A container's name is
    /// 1 to 253 bytes of `A-Za-z0-9._-`.
    pub fn parse(path: &str) -> Option<Self> {
        let (prefix, rest) =
            PREFIXES.iter().find_map(|prefix| Some((*prefix, path.strip_prefix(prefix)?)))?;
        let (container, kind) = rest.split_once('/')?;
        let kind = match (prefix, kind) {
            ("/app-health/", "livez") => ProbeKind::Livez,
            ("/app-health/", "readyz") => ProbeKind::Readyz,
            ("/app-health/", "startupz") => ProbeKind::Startupz,
            ("/app-lifecycle/", "prestopz") => ProbeKind::Prestopz,
            ("/app-lifecycle/", "poststartz") => ProbeKind::Poststartz,
            _ => return None,
        };
        let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let valid = (1..=253).contains(&container.len()) && container.bytes().all(named);
        valid.then(|| Self { container: container.into(), kind })
    }

    /// The container's name.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Which of its probes.
    pub fn kind(&self) -> ProbeKind {
        self.kind
    }
}

impl fmt::Display for ProbePath {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let prefix = if self.kind.is_hook() { "/app-lifecycle" } else { "/app-health" };
        write!(formatter, "{prefix}/{}/{}", self.container, self.kind.word())
    }
}

#[cfg(test)]
mod tests;
