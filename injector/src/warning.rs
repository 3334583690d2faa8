//! The warnings of the injector. Users read the text; the code is a label of a metric.

use std::fmt;

use serde_json::Value;

/// The maximum length of a value in a warning, in bytes.
const EXCERPT: usize = 64;

enum_table::table! {
    /// The kind of a warning. The set is closed, so that it can be the label of a metric.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Code(
        /// Returns the word in the text of the warning and in the label of the metric.
        word: &'static str,
    ) {
        /// A label or annotation has an invalid value.
        Annotation("annotation"),
        /// The annotations would exceed the limit of Kubernetes.
        AnnotationSize("annotation-size"),
        /// The probe of an init container that starts before the proxy.
        BeforeProxy("before-proxy"),
        /// A probe with no handler, several, an unknown one, or an unknown field.
        Handler("handler"),
        /// Hold was switched off for a native sidecar, which always starts first.
        Hold("hold"),
        /// A `postStart` hook may run before the proxy is running.
        HookEarly("hook-early"),
        /// The Pod declares a hook of the sidecar, which is kept.
        HookKept("hook-kept"),
        /// A `tcpSocket` hook, which kubelet does not support.
        HookTcp("hook-tcp"),
        /// A probe of another host than the Pod.
        Host("host"),
        /// The Pod uses the network of the node.
        HostNetwork("host-network"),
        /// A probe of an ordinary init container.
        Init("init"),
        /// A classic sidecar in a Job.
        Job("job"),
        /// A value that `probe` rejects, or a malformed Pod.
        Malformed("malformed"),
        /// A container name that is not valid in a path, or not unique.
        Name("name"),
        /// A port name that the container does not declare.
        NamedPort("named-port"),
        /// Injection was requested, but the mode is rewrite-only.
        NoSidecar("no-sidecar"),
        /// A probe that targets the proxy, which has no entry for it.
        Orphan("orphan"),
        /// The Pod has Istio's sidecar.
        OtherInjector("other-injector"),
        /// A probe of the proxy itself.
        OwnPort("own-port"),
        /// The Pod's own limits are too low for the sidecar.
        PodResources("pod-resources"),
        /// A container declares a port of the proxy.
        PortClash("port-clash"),
        /// The sidecar changes the QoS class of the Pod.
        Qos("qos"),
        /// The sidecar cannot start with the security context of the Pod.
        SecurityContext("security-context"),
        /// A container with the sidecar's name is not a sidecar, or there are several.
        Sidecar("sidecar"),
        /// The status port is 0.
        StatusPort("status-port"),
        /// The existing table of probes cannot be parsed.
        Table("table"),
        /// The table of probes would be too large.
        TableSize("table-size"),
        /// The Pod was injected from another template.
        TemplateChanged("template-changed"),
        /// A name in the template is already used in the Pod.
        TemplateName("template-name"),
        /// The Pod runs on a Windows node.
        Windows("windows"),
    }
}

/// One warning. Its text is `app-health: <container>.<field>: <text> (<code>)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub code: Code,
    /// The container and the field, for example `livenessProbe`, if the warning is about one.
    pub place: Option<(String, String)>,
    /// The path of the field of the Pod that causes a warning about the Pod, for example
    /// `spec.hostNetwork`.
    pub field: String,
    /// One line of printable ASCII, without the values of HTTP headers.
    pub text: String,
}

impl Warning {
    pub fn about_pod(code: Code, text: impl Into<String>) -> Self {
        Self { code, place: None, field: "spec".to_owned(), text: text.into() }
    }

    pub fn about_field(
        code: Code,
        container: impl Into<String>,
        field: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let place = Some((container.into(), field.into()));
        Self { place, ..Self::about_pod(code, text) }
    }

    /// Names the field of the Pod that causes it.
    pub fn at(self, field: impl Into<String>) -> Self {
        Self { field: field.into(), ..self }
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
