//! What the injector could not do, as values: people read the text, metrics count the code, tools may use the rest.

use std::fmt;

use serde_json::Value;

/// How much of a value a warning shows, in bytes.
const EXCERPT: usize = 64;

/// A warning's name; the set is closed, so that it can be a metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A label or annotation has a value that it cannot have.
    Annotation,
    /// An init container's probe waits for a proxy that starts later.
    BeforeProxy,
    /// Not exactly one handler, or a field of it that nobody here knows.
    Handler,
    /// Hold was switched off, and a native sidecar starts first all the same.
    Hold,
    /// A postStart hook may come before the proxy.
    HookEarly,
    /// The sidecar's own hook stays as its author wrote it.
    HookKept,
    /// A `tcpSocket` hook.
    HookTcp,
    /// A probe that kubelet sends elsewhere than to the Pod.
    Host,
    /// The Pod shares the node's network.
    HostNetwork,
    /// A probe on an ordinary init container.
    Init,
    /// A classic sidecar in a Job.
    Job,
    /// What `probe` refuses, or what is no Pod.
    Malformed,
    /// A container whose name cannot be part of a path.
    Name,
    /// A port's name that the container does not have.
    NamedPort,
    /// Injection was asked for, and only rewriting is on.
    NoSidecar,
    /// The proxy's address, but the proxy does not know the probe.
    Orphan,
    /// Istio's sidecar is there.
    OtherInjector,
    /// A probe of the proxy itself.
    OwnPort,
    /// A container has the proxy's port.
    PortClash,
    /// The sidecar's name on something that is none.
    Sidecar,
    /// Status port 0.
    StatusPort,
    /// The prober table that is there cannot be read.
    Table,
    /// The prober table would be too large.
    TableSize,
    /// Another template than the one the Pod was injected with.
    TemplateChanged,
    /// A name of the template is taken.
    TemplateName,
}

impl Code {
    /// The name, as in a warning's parentheses and in the metric's label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::BeforeProxy => "before-proxy",
            Self::Handler => "handler",
            Self::Hold => "hold",
            Self::HookEarly => "hook-early",
            Self::HookKept => "hook-kept",
            Self::HookTcp => "hook-tcp",
            Self::Host => "host",
            Self::HostNetwork => "host-network",
            Self::Init => "init",
            Self::Job => "job",
            Self::Malformed => "malformed",
            Self::Name => "name",
            Self::NamedPort => "named-port",
            Self::NoSidecar => "no-sidecar",
            Self::Orphan => "orphan",
            Self::OtherInjector => "other-injector",
            Self::OwnPort => "own-port",
            Self::PortClash => "port-clash",
            Self::Sidecar => "sidecar",
            Self::StatusPort => "status-port",
            Self::Table => "table",
            Self::TableSize => "table-size",
            Self::TemplateChanged => "template-changed",
            Self::TemplateName => "template-name",
        }
    }
}

/// One warning; as a text `app-health: <container>.<field>: <text> (<code>)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Which kind.
    pub code: Code,
    /// The container and its field (`livenessProbe`, `preStop`), if it is about one.
    pub place: Option<(String, String)>,
    /// One line of printable ASCII, never a header's value.
    pub text: String,
}

impl Warning {
    /// About the Pod.
    pub fn of_pod(code: Code, text: impl Into<String>) -> Self {
        Self { code, place: None, text: text.into() }
    }

    /// About a container's field.
    pub fn of_field(
        code: Code,
        container: impl Into<String>,
        field: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self { code, place: Some((container.into(), field.into())), text: text.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let (text, code) = (&self.text, self.code.word());
        match &self.place {
            Some((container, field)) => write!(formatter, "app-health: {container}.{field}: {text} ({code})"),
            None => write!(formatter, "app-health: {text} ({code})"),
        }
    }
}

/// A value as JSON in printable ASCII, cut at 64 bytes.
pub fn quote(value: &Value) -> String {
    let mut quoted = String::new();
    for char in value.to_string().chars() {
        if quoted.len() >= EXCERPT {
            quoted.push_str("...");
            break;
        }
        match char {
            ' '..='~' => quoted.push(char),
            other => quoted.extend(other.escape_unicode()),
        }
    }
    quoted
}

/// What `probe` says against an entry or a table, without what may be secret: values of headers, and pieces of the whole.
pub fn of_probe(error: &probe::ConfigError, key: &str) -> String {
    let place = error.key.strip_prefix(&format!("probers[\"{key}\"]")).unwrap_or(&error.key);
    let place = place.trim_start_matches('.');
    let scalar = !error.value.starts_with(['{', '[']);
    let shown = scalar && !place.contains("httpHeaders") && place != "probers";
    match (place, shown) {
        ("", _) => error.reason.clone(),
        (_, true) => format!("{place} = {}: {}", error.value, error.reason),
        (_, false) => format!("{place}: {}", error.reason),
    }
}

#[cfg(test)]
mod tests;
