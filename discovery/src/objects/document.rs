//! Parses documents into objects. Each error starts with the path of the field, and all errors are
//! reported.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;
use workload_health::fields::{Findings, Object, excerpt};
use workload_health::workload_group::{check_kind, names};
use workload_health::{Checked, WorkloadGroup};

use super::{ExportTo, Group, Key, LastEndpoint, ManualEntry, Port, Protocol, Service, Source, Spec};

/// Namespace of objects that specify none.
const NAMESPACE: &str = "default";
/// Annotation with the policy for a service's last endpoint: `remove` or `keep`.
pub const LAST_ENDPOINT: &str = "app-health.io/last-endpoint";
/// Istio's annotation that lets health reports act on the endpoint.
pub const HEALTH_CHECKS: &str = "proxy.istio.io/health-checks-enabled";
/// Istio's limit for the length of a host name.
const HOST_BYTES: usize = 253;
/// Maximum length of a Unix socket path in bytes. Envoy rejects an assignment that contains a
/// longer path or a NUL byte.
const SOCKET_BYTES: usize = 107;

impl Group {
    pub fn parse(document: &Value) -> Result<Checked<Self>, Vec<String>> {
        let Checked { value: group, warnings } = WorkloadGroup::parse(document)?;
        let namespace = group.namespace.clone().unwrap_or_else(|| NAMESPACE.to_owned());
        let key = Key::new(namespace, group.name.clone());
        Ok(Checked { value: Self::new(key, group), warnings })
    }
}

impl ManualEntry {
    pub fn parse(document: &Value) -> Result<Checked<(Key, Self)>, Vec<String>> {
        let mut findings = Findings::default();
        let value = read(document, "WorkloadEntry", &mut findings, |key, document, spec, findings| {
            let metadata = document.object("metadata", findings);
            let mut map =
                |name| metadata.as_ref().map(|it| it.string_map(name, findings)).unwrap_or_default();
            let (annotations, labels) = (map("annotations"), map("labels"));
            let word = annotations.get(HEALTH_CHECKS).map(String::as_str);
            let health_checks = word.and_then(probe::go::parse_bool);
            let mut spec = Spec::read(&spec, findings)?;
            // As in istiod, a ServiceEntry selects by both, and those of the metadata win.
            spec.labels.extend(labels);
            let spec = Arc::new(spec);
            Some((key, Self { spec, annotations, health_checks }))
        });
        findings.checked(value)
    }
}

impl Service {
    /// Parses a ServiceEntry. Features that this server does not support are errors: DNS
    /// resolution, selectors of other namespaces, and a ServiceEntry without endpoints and
    /// selector.
    pub fn parse(document: &Value) -> Result<Checked<Self>, Vec<String>> {
        let mut findings = Findings::default();
        let value = read(document, "ServiceEntry", &mut findings, |key, document, spec, findings| {
            spec.warn_unknown(
                &[
                    "hosts",
                    "addresses",
                    "ports",
                    "location",
                    "resolution",
                    "endpoints",
                    "workloadSelector",
                    "exportTo",
                    "subjectAltNames",
                ],
                findings,
            );
            let resolution = spec.string("resolution", findings);
            if resolution != "STATIC" {
                let got = if resolution.is_empty() { "none".to_owned() } else { excerpt(&resolution.into()) };
                findings.error("spec.resolution", format_args!("must be STATIC, got {got}"));
            }
            let hosts = hosts(&spec, findings);
            let ports = ports(&spec, findings);
            let source = source(&spec, findings);
            let export_to = export_to(&spec, findings);
            let last_endpoint = last_endpoint(&document, findings);
            let created = document.object("metadata", findings);
            let created = created.map(|metadata| metadata.string("creationTimestamp", findings).to_owned());
            let created = created.filter(|created| !created.is_empty());
            Some(Self { key, hosts, ports, source: source?, export_to, created, last_endpoint })
        });
        findings.checked(value)
    }
}

impl Spec {
    /// Parses the fields of a WorkloadEntry or an inline endpoint.
    pub(super) fn read(fields: &Object, findings: &mut Findings) -> Option<Self> {
        let known = ["address", "ports", "labels", "network", "locality", "weight", "serviceAccount"];
        fields.warn_unknown(&known, findings);
        let named = |name, findings: &mut Findings| {
            let text = fields.string(name, findings);
            (!text.is_empty()).then(|| text.to_owned())
        };
        let address = named("address", findings);
        let path = fields.field_path("address");
        let is_right = |address: &str| {
            address.parse::<IpAddr>().is_ok()
                || address.strip_prefix("unix://").is_some_and(|path| path.starts_with('/') && path.len() > 1)
        };
        let is_socket = |address: &str| {
            address
                .strip_prefix("unix://")
                .is_none_or(|path| path.len() <= SOCKET_BYTES && !path.contains('\0'))
        };
        match &address {
            None if fields.value("address").is_none() => findings.error(&path, "is required"),
            Some(address) if !is_right(address) => {
                let got = excerpt(&address.as_str().into());
                findings.error(&path, format_args!("must be an IP address or unix:///PATH, got {got}"));
            }
            Some(address) if !is_socket(address) => {
                findings.error(
                    &path,
                    format_args!("a socket path must have at most {SOCKET_BYTES} bytes and no NUL"),
                );
            }
            _ => {}
        }
        Some(Self {
            address: address.unwrap_or_default(),
            ports: fields.port_map("ports", findings),
            labels: fields.string_map("labels", findings),
            network: named("network", findings),
            locality: named("locality", findings),
            weight: fields.int32("weight", 1, findings),
            service_account: named("serviceAccount", findings),
        })
    }
}

/// Parses kind, version and names, and then the rest with `rest`, which gets the key, the document
/// and its spec.
fn read<'a, T>(
    document: &'a Value,
    kind: &str,
    findings: &mut Findings,
    rest: impl FnOnce(Key, Object<'a>, Object<'a>, &mut Findings) -> Option<T>,
) -> Option<T> {
    if !document.is_object() {
        findings.error("kind", format_args!("expected {kind}, got none"));
        return None;
    }
    let document = Object::new(document, "", findings)?;
    check_kind(&document, kind, findings);
    let names = names(&document, findings);
    let Some(spec) = document.object("spec", findings) else {
        if document.value("spec").is_none() {
            findings.error("spec", "is required");
        }
        return None;
    };
    // The rest is parsed even without a name, so that all errors are reported.
    let key = names
        .clone()
        .map(|(name, namespace)| Key::new(namespace.unwrap_or_else(|| NAMESPACE.to_owned()), name));
    let value = rest(key.unwrap_or_else(|| Key::new("", "")), document, spec, findings);
    names.and(value)
}

fn hosts(spec: &Object, findings: &mut Findings) -> Vec<String> {
    let mut hosts = Vec::new();
    for (path, value) in spec.list("hosts", findings) {
        let Some(host) = workload_health::fields::string(value, &path, findings) else { continue };
        let is_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || host.len() > HOST_BYTES || !host.bytes().all(is_byte) {
            findings.error(&path, format_args!("must be a DNS name, got {}", excerpt(value)));
        } else if hosts.iter().any(|other| other == host) {
            findings.error(&path, format_args!("duplicate value {}", excerpt(value)));
        } else {
            hosts.push(host.to_owned());
        }
    }
    if spec.value("hosts").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        findings.error("spec.hosts", "must have at least one element");
    }
    hosts
}

fn ports(spec: &Object, findings: &mut Findings) -> Vec<Port> {
    let mut ports: Vec<Port> = Vec::new();
    let (mut numbers, mut port_names) = (BTreeSet::new(), BTreeSet::new());
    for (path, value) in spec.list("ports", findings) {
        let Some(port) = Object::new(value, path, findings) else { continue };
        port.warn_unknown(&["number", "name", "protocol", "targetPort"], findings);
        let number = port.port("number", findings);
        let name = port.string("name", findings);
        if port.value("name").is_none()
            || (name.is_empty() && port.value("name").is_some_and(Value::is_string))
        {
            findings.error(&port.field_path("name"), "is required");
        } else if !port_names.insert(name) {
            findings
                .error(&port.field_path("name"), format_args!("duplicate value {}", excerpt(&name.into())));
        }
        let target_port = match port.value("targetPort") {
            None => None,
            Some(zero) if zero.as_u64() == Some(0) => None,
            Some(_) => port.port("targetPort", findings),
        };
        let protocol = protocol(&port, findings);
        let Some(number) = number else { continue };
        if !numbers.insert(number) {
            findings.error(&port.field_path("number"), format_args!("duplicate value {number}"));
        }
        let target_port = target_port.map(std::num::NonZeroU16::get);
        ports.push(Port { number: number.get(), name: name.to_owned(), protocol, target_port });
    }
    if spec.value("ports").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        findings.error("spec.ports", "must have at least one element");
    }
    ports
}

fn protocol(port: &Object, findings: &mut Findings) -> Protocol {
    let word = port.string("protocol", findings);
    match word.to_ascii_uppercase().as_str() {
        "" | "TCP" => Protocol::Tcp,
        "HTTP" => Protocol::Http,
        "HTTPS" => Protocol::Https,
        "HTTP2" => Protocol::Http2,
        "GRPC" | "GRPC-WEB" => Protocol::Grpc,
        "TLS" => Protocol::Tls,
        "MONGO" => Protocol::Mongo,
        _ => {
            let got = excerpt(&word.into());
            let path = port.field_path("protocol");
            findings.error(
                &path,
                format_args!("must be HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TCP, TLS or MONGO, got {got}"),
            );
            Protocol::Tcp
        }
    }
}

fn source(spec: &Object, findings: &mut Findings) -> Option<Source> {
    let selector = spec.object("workloadSelector", findings);
    let endpoints = spec.list("endpoints", findings);
    match (selector, endpoints.is_empty()) {
        (Some(_), false) => {
            findings.error("spec", "only one of endpoints and workloadSelector may be given");
            None
        }
        (None, true) => {
            if spec.value("workloadSelector").is_none() {
                findings.error("spec", "one of endpoints and workloadSelector is required");
            }
            None
        }
        (Some(selector), true) => {
            selector.warn_unknown(&["labels"], findings);
            let labels = selector.string_map("labels", findings);
            if labels.is_empty() {
                findings.error("spec.workloadSelector.labels", "must have at least one label");
            }
            Some(Source::Selector(labels))
        }
        (None, false) => {
            let specs = endpoints.into_iter().filter_map(|(path, value)| {
                let fields = Object::new(value, path, findings)?;
                Spec::read(&fields, findings).map(Arc::new)
            });
            Some(Source::Inline(specs.collect()))
        }
    }
}

fn export_to(spec: &Object, findings: &mut Findings) -> ExportTo {
    let words = spec.list("exportTo", findings);
    let mut export_to = ExportTo::All;
    for (path, value) in &words {
        match value.as_str() {
            Some("*") => {}
            Some(".") if words.len() == 1 => export_to = ExportTo::OwnNamespace,
            Some(".") => {}
            _ => findings.error(path, format_args!("must be \".\" or \"*\", got {}", excerpt(value))),
        }
    }
    export_to
}

fn last_endpoint(document: &Object, findings: &mut Findings) -> Option<LastEndpoint> {
    let metadata = document.object("metadata", findings)?;
    let annotations = metadata.object("annotations", findings)?;
    let word = annotations.value(LAST_ENDPOINT)?;
    match word.as_str() {
        Some("remove") => Some(LastEndpoint::Remove),
        Some("keep") => Some(LastEndpoint::Keep),
        _ => {
            let path = format!("metadata.annotations[{LAST_ENDPOINT}]");
            findings.error(&path, format_args!("must be remove or keep, got {}", excerpt(word)));
            None
        }
    }
}
