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

enum_table::table! {
    /// What was found. The words are a public interface: scripts read them.
    #[derive(PartialOrd, Ord)]
    pub enum Code(
        /// Returns the word for the output.
        word: &'static str,
    ) {
        Application("application"),
        Completed("completed"),
        ContainerConfig("container-config"),
        ControlPlane("control-plane"),
        EnvoyRestarts("envoy-restarts"),
        Failed("failed"),
        Hook("hook"),
        Image("image"),
        Init("init"),
        Network("network"),
        Node("node"),
        NoPods("no-pods"),
        NoReplicas("no-replicas"),
        NotAnswering("not-answering"),
        NotFound("not-found"),
        NotInjected("not-injected"),
        NotReadable("not-readable"),
        NotRewritten("not-rewritten"),
        OutOfMemory("out-of-memory"),
        Probe("probe"),
        ProbeRecovered("probe-recovered"),
        Quota("quota"),
        ReadinessGate("readiness-gate"),
        Refused("refused"),
        Restarts("restarts"),
        Rollout("rollout"),
        Sandbox("sandbox"),
        Scheduling("scheduling"),
        Sidecar("sidecar"),
        SidecarCrash("sidecar-crash"),
        Slow("slow"),
        Starting("starting"),
        Startup("startup"),
        Terminating("terminating"),
        Unknown("unknown"),
        Volume("volume"),
        Warning("warning"),
        Windows("windows"),
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
