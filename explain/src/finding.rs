//! One thing that was found out about a Pod or a workload.

use serde::{Serialize, Serializer};

/// The effect of a finding on the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The object does not work because of it.
    Broken,
    /// The Pod has no sidecar; it may work without.
    NotInjected,
    /// The object does not work, or it could not be read, and the reason is not known.
    Unknown,
    /// Worth knowing; the object works in spite of it.
    Note,
}

/// What was found. The words are a public interface: scripts read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    Application,
    Completed,
    ContainerConfig,
    EnvoyRestarts,
    Failed,
    Hook,
    Image,
    Init,
    Network,
    Node,
    NoPods,
    NoReplicas,
    NotAnswering,
    NotFound,
    NotInjected,
    NotReadable,
    NotRewritten,
    OutOfMemory,
    Probe,
    ProbeRecovered,
    Quota,
    ReadinessGate,
    Refused,
    Restarts,
    Rollout,
    Sandbox,
    Scheduling,
    Sidecar,
    SidecarCrash,
    Slow,
    Starting,
    Startup,
    Terminating,
    Unknown,
    Volume,
    Warning,
    Windows,
}

impl Code {
    pub const ALL: [Self; 37] = [
        Self::Application,
        Self::Completed,
        Self::ContainerConfig,
        Self::EnvoyRestarts,
        Self::Failed,
        Self::Hook,
        Self::Image,
        Self::Init,
        Self::Network,
        Self::Node,
        Self::NoPods,
        Self::NoReplicas,
        Self::NotAnswering,
        Self::NotFound,
        Self::NotInjected,
        Self::NotReadable,
        Self::NotRewritten,
        Self::OutOfMemory,
        Self::Probe,
        Self::ProbeRecovered,
        Self::Quota,
        Self::ReadinessGate,
        Self::Refused,
        Self::Restarts,
        Self::Rollout,
        Self::Sandbox,
        Self::Scheduling,
        Self::Sidecar,
        Self::SidecarCrash,
        Self::Slow,
        Self::Starting,
        Self::Startup,
        Self::Terminating,
        Self::Unknown,
        Self::Volume,
        Self::Warning,
        Self::Windows,
    ];

    /// Returns the word for the output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Completed => "completed",
            Self::ContainerConfig => "container-config",
            Self::EnvoyRestarts => "envoy-restarts",
            Self::Failed => "failed",
            Self::Hook => "hook",
            Self::Image => "image",
            Self::Init => "init",
            Self::Network => "network",
            Self::Node => "node",
            Self::NoPods => "no-pods",
            Self::NoReplicas => "no-replicas",
            Self::NotAnswering => "not-answering",
            Self::NotFound => "not-found",
            Self::NotInjected => "not-injected",
            Self::NotReadable => "not-readable",
            Self::NotRewritten => "not-rewritten",
            Self::OutOfMemory => "out-of-memory",
            Self::Probe => "probe",
            Self::ProbeRecovered => "probe-recovered",
            Self::Quota => "quota",
            Self::ReadinessGate => "readiness-gate",
            Self::Refused => "refused",
            Self::Restarts => "restarts",
            Self::Rollout => "rollout",
            Self::Sandbox => "sandbox",
            Self::Scheduling => "scheduling",
            Self::Sidecar => "sidecar",
            Self::SidecarCrash => "sidecar-crash",
            Self::Slow => "slow",
            Self::Starting => "starting",
            Self::Startup => "startup",
            Self::Terminating => "terminating",
            Self::Unknown => "unknown",
            Self::Volume => "volume",
            Self::Warning => "warning",
            Self::Windows => "windows",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// One finding. Its text contains no name of a Pod and no time, so that equal Pods have equal
/// findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub code: Code,
    pub severity: Severity,
    /// The container that it is about; empty if it is about the whole object.
    pub container: String,
    pub text: String,
    /// True if what was read proves the cause, or the message is known and has only this one; false
    /// if the advice is a hint.
    pub certain: bool,
    /// What an operator can do about it, in one sentence.
    pub advice: String,
}

impl Finding {
    fn new(code: Code, severity: Severity, text: impl Into<String>, advice: impl Into<String>) -> Self {
        let certain = severity != Severity::Unknown;
        Self { code, severity, container: String::new(), text: text.into(), certain, advice: advice.into() }
    }

    pub(crate) fn broken(code: Code, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(code, Severity::Broken, text, advice)
    }

    pub(crate) fn not_injected(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Code::NotInjected, Severity::NotInjected, text, advice)
    }

    pub(crate) fn unknown(code: Code, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(code, Severity::Unknown, text, advice)
    }

    pub(crate) fn note(code: Code, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, text, advice)
    }

    /// Marks the advice as a hint unless `certain` is true.
    pub(crate) fn certain_if(self, certain: bool) -> Self {
        Self { certain: self.certain && certain, ..self }
    }

    pub(crate) fn about(self, container: &str) -> Self {
        Self { container: container.to_owned(), ..self }
    }
}
