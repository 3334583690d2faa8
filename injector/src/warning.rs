//! The warnings of the injector. Users read the text; the code is a label of a metric.

use std::fmt;

use serde_json::Value;

/// The maximum length of a value in a warning, in bytes.
const EXCERPT: usize = 64;

/// The kind of a warning. The set is closed, so that it can be the label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A label or annotation has an invalid value.
    Annotation,
    /// The annotations would exceed the limit of Kubernetes.
    AnnotationSize,
    /// The probe of an init container that starts before the proxy.
    BeforeProxy,
    /// A probe with no handler, with several handlers, or with an unknown field.
    Handler,
    /// Hold was switched off for a native sidecar, which always starts first.
    Hold,
    /// A `postStart` hook may run before the proxy is running.
    HookEarly,
    /// The Pod declares a hook of the sidecar, which is kept.
    HookKept,
    /// A `tcpSocket` hook, which kubelet does not support.
    HookTcp,
    /// A probe of another host than the Pod.
    Host,
    /// The Pod uses the network of the node.
    HostNetwork,
    /// A probe of an ordinary init container.
    Init,
    /// A classic sidecar in a Job.
    Job,
    /// A value that `probe` rejects, or a malformed Pod.
    Malformed,
    /// A container name that is not valid in a path, or not unique.
    Name,
    /// A port name that the container does not declare.
    NamedPort,
    /// Injection was requested, but the mode is rewrite-only.
    NoSidecar,
    /// A probe that targets the proxy, which has no entry for it.
    Orphan,
    /// The Pod has Istio's sidecar.
    OtherInjector,
    /// A probe of the proxy itself.
    OwnPort,
    /// The Pod's own limits are too low for the sidecar.
    PodResources,
    /// A container declares a port of the proxy.
    PortClash,
    /// The sidecar changes the QoS class of the Pod.
    Qos,
    /// The sidecar cannot start with the security context of the Pod.
    SecurityContext,
    /// A container with the sidecar's name is not a sidecar, or there are several.
    Sidecar,
    /// The status port is 0.
    StatusPort,
    /// The existing table of probes cannot be parsed.
    Table,
    /// The table of probes would be too large.
    TableSize,
    /// The Pod was injected from another template.
    TemplateChanged,
    /// A name in the template is already used in the Pod.
    TemplateName,
    /// The Pod runs on a Windows node.
    Windows,
}

impl Code {
    /// Returns the word in the text of the warning and in the label of the metric.
    pub fn word(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::AnnotationSize => "annotation-size",
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
            Self::PodResources => "pod-resources",
            Self::PortClash => "port-clash",
            Self::Qos => "qos",
            Self::SecurityContext => "security-context",
            Self::Sidecar => "sidecar",
            Self::StatusPort => "status-port",
            Self::Table => "table",
            Self::TableSize => "table-size",
            Self::TemplateChanged => "template-changed",
            Self::TemplateName => "template-name",
            Self::Windows => "windows",
        }
    }
}

/// One warning. Its text is `app-health: <container>.<field>: <text> (<code>)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub code: Code,
    /// The container and the field, for example `livenessProbe`, if the warning is about one.
    pub place: Option<(String, String)>,
    /// One line of printable ASCII, without the values of HTTP headers.
    pub text: String,
}

impl Warning {
    pub fn about_pod(code: Code, text: impl Into<String>) -> Self {
        Self { code, place: None, text: text.into() }
    }

    pub fn about_field(
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

/// Returns a value as JSON in printable ASCII, cut at 64 bytes.
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

/// Returns the text of an error of `probe`, without parts that may be secret: values of headers,
/// and excerpts of objects and arrays.
pub fn probe_error(error: &probe::ConfigError, key: &str) -> String {
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
