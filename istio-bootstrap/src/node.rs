//! The node that Envoy's bootstrap names, with the metadata by which istiod decides what it sends.

mod fields;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::proxy_config::ProxyConfig;
use fields::FIELDS;
use probe::go::parse_bool;

const META: &str = "ISTIO_META_";
const META_JSON: &str = "ISTIO_METAJSON_";
const LABELS: &str = "ISTIO_METAJSON_LABELS";
/// The label that tells the Pods of two revisions of a Deployment apart.
const REVISION_LABEL: &str = "pod-template-hash";
const LOCALITY_LABELS: [&str; 2] = ["topology.istio.io/locality", "istio-locality"];

/// What the metadata is made of, besides the ProxyConfig.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The environment, in its order.
    pub environment: Vec<(String, String)>,
    /// The files of the downward API; `None` if they do not exist.
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    /// The addresses of the Pod, of which the first one is the one that istiod knows it by.
    pub addresses: Vec<String>,
    /// The version of Istio, unless the environment says another one.
    pub istio_version: String,
    pub domain: String,
    pub outlier_log_path: String,
    /// True if Envoy writes its log as JSON.
    pub log_as_json: bool,
    /// True if certificates come from files only.
    pub only_file_credentials: bool,
}

impl Sources {
    /// The last value of a variable, as a process sees it.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.variable(name).and_then(parse_bool).unwrap_or(default)
    }

    fn port(&self, name: &str, default: i64) -> i64 {
        self.variable(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }
}

/// A node as Istio's agent describes it.
#[derive(Clone, Debug)]
pub struct Node {
    pub id: String,
    /// What the bootstrap contains: fields that istiod knows, and all others.
    pub metadata: Map<String, Value>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Region, zone and subzone; empty if they are not known.
    pub locality: [String; 3],
    /// Whether the environment asks Envoy to look up the metadata of its peers.
    pub discovers_metadata: bool,
}

/// A value of the environment that a field of the metadata cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub field: String,
    pub expected: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the metadata {} of the environment is not {}", self.field, self.expected)
    }
}

impl std::error::Error for Refused {}

impl Node {
    /// # Errors
    /// The first field whose value has the wrong type. Istio's agent does not start then either.
    pub fn new(sources: &Sources, config: &ProxyConfig) -> Result<Self, Refused> {
        let untyped = untyped(sources, config);
        let mut metadata = typed(&untyped)?;
        let mut set = |name: &str, value: Value| {
            let is_empty = match &value {
                Value::String(text) => text.is_empty(),
                Value::Number(number) => number.as_i64() == Some(0),
                Value::Object(map) => map.is_empty(),
                Value::Array(list) => list.is_empty(),
                _ => false,
            };
            if is_empty {
                metadata.remove(name)
            } else {
                metadata.insert(name.to_owned(), value)
            };
        };
        for (name, variable) in
            [("NAME", "POD_NAME"), ("NAMESPACE", "POD_NAMESPACE"), ("SERVICE_ACCOUNT", "SERVICE_ACCOUNT")]
        {
            if let Some(value) = sources.variable(variable) {
                set(name, value.into());
            }
        }
        set("INSTANCE_IPS", without_duplicates(&sources.addresses).join(",").into());
        set("ENVOY_STATUS_PORT", sources.port("ENVOY_STATUS_PORT", 15021).into());
        set("ENVOY_PROMETHEUS_PORT", sources.port("ENVOY_PROMETHEUS_PORT", 15090).into());
        set("ENVOY_SECURE_METRICS_PORT", sources.port("ENVOY_SECURE_METRICS_PORT", 0).into());
        set("ENVOY_SECURE_MERGED_METRICS_PORT", sources.port("ENVOY_SECURE_MERGED_METRICS_PORT", 0).into());
        for (name, default) in
            [("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", false), ("ENVOY_SKIP_DEPRECATED_LOGS", true)]
        {
            set(name, if sources.flag(name, default) { "true" } else { "" }.into());
        }
        let socket = sources.variable("WORKLOAD_IDENTITY_SOCKET_FILE").unwrap_or("socket");
        set("WORKLOAD_IDENTITY_SOCKET_FILE", socket.into());
        set("PROXY_CONFIG", config.as_json().clone().into());
        set("OUTLIER_LOG_PATH", sources.outlier_log_path.as_str().into());
        set("PILOT_SAN", pilot_san(config).map_or_else(Vec::new, |san| vec![Value::from(san)]).into());

        let mut static_labels = static_labels(sources);
        let (labels, locality) = labels(sources, &static_labels, &metadata_texts(&untyped, "LABELS"));
        // Without labels of the Pod, both are one map in Istio's agent.
        if sources.labels.is_none() && !static_labels.is_empty() {
            static_labels.clone_from(&labels);
        }
        let annotations = sources.annotations.clone().unwrap_or_default();
        let texts = |map: &BTreeMap<String, String>| {
            map.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect::<Map<_, _>>().into()
        };
        set("LABELS", texts(&labels));
        set("STATIC_LABELS", texts(&static_labels));
        set("ANNOTATIONS", texts(&annotations));

        let is_ambient = metadata.get("ENABLE_HBONE").and_then(Value::as_str) == Some("true");
        let discovers_metadata = match sources.variable("PEER_METADATA_DISCOVERY") {
            Some(value) => parse_bool(value).unwrap_or(false),
            None => is_ambient,
        };
        metadata.insert("METADATA_DISCOVERY".to_owned(), discovers_metadata.to_string().into());
        metadata.entry("ISTIO_VERSION").or_insert_with(|| sources.istio_version.as_str().into());
        for (name, value) in untyped {
            metadata.entry(name).or_insert(value);
        }
        if sources.only_file_credentials {
            metadata.insert("file-credential".to_owned(), "true".into());
        }
        Ok(Self { id: id(sources), metadata, labels, annotations, locality, discovers_metadata })
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.metadata.get(field).and_then(Value::as_str).unwrap_or_default()
    }
}

/// `sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local`, from which istiod reads type, address and name.
fn id(sources: &Sources) -> String {
    let address = sources.addresses.first().map_or("", String::as_str);
    let name = sources.variable("POD_NAME").unwrap_or_default();
    let namespace = sources.variable("POD_NAMESPACE").unwrap_or_default();
    format!("sidecar~{address}~{name}.{namespace}~{}", sources.domain)
}

/// The name that istiod's certificate has, if the connection is authenticated.
fn pilot_san(config: &ProxyConfig) -> Option<&str> {
    let host = config.text("discoveryAddress").split(':').next().unwrap_or_default();
    let is_authenticated = config.text("controlPlaneAuthPolicy") == "MUTUAL_TLS";
    is_authenticated.then_some(if host == "localhost" { "istiod.istio-system.svc" } else { host })
}

/// What the environment and `proxyMetadata` say, where the names of variables say nothing about the types.
fn untyped(sources: &Sources, config: &ProxyConfig) -> Map<String, Value> {
    let mut untyped = Map::new();
    for (name, value) in config.texts("proxyMetadata") {
        if let Some(name) = name.strip_prefix(META) {
            untyped.insert(name.to_owned(), value.into());
        }
    }
    for (name, value) in &sources.environment {
        if let Some(name) = name.strip_prefix(META) {
            untyped.insert(name.to_owned(), value.as_str().into());
        }
    }
    for (name, value) in &sources.environment {
        if name.starts_with(META_JSON)
            && let Ok(Value::Object(values)) = serde_json::from_str(value)
        {
            untyped.extend(values);
        }
    }
    if let Some(address) = sources.variable("DNS_PROXY_ADDR").filter(|address| !address.is_empty()) {
        untyped.insert("DNS_PROXY_ADDR".to_owned(), address.into());
    }
    untyped
}

/// Reads the fields that istiod knows, whose names Go compares without regard to case.
fn typed(untyped: &Map<String, Value>) -> Result<Map<String, Value>, Refused> {
    let mut typed = Map::new();
    let mut names: Vec<_> = untyped.keys().collect();
    names.sort_unstable();
    for name in names {
        let exact = FIELDS.iter().find(|(field, _)| field == name);
        let folded = || FIELDS.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        let Some((field, kind)) = exact.or_else(folded) else { continue };
        let Some(value) = untyped.get(name).filter(|value| !value.is_null()) else { continue };
        let refuse = |expected| Refused { field: name.clone(), expected };
        match kind.read(value).map_err(refuse)? {
            Some(value) => typed.insert((*field).to_owned(), value),
            None => typed.remove(*field),
        };
    }
    Ok(typed)
}

fn metadata_texts(untyped: &Map<String, Value>, field: &str) -> BTreeMap<String, String> {
    let texts = untyped.get(field).and_then(Value::as_object).into_iter().flatten();
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The labels that do not come from the Pod.
fn static_labels(sources: &Sources) -> BTreeMap<String, String> {
    let text = sources.variable(LABELS).unwrap_or_default();
    // As in Go, null is an empty text.
    let labels: BTreeMap<String, Option<String>> = serde_json::from_str(text).unwrap_or_default();
    labels.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect()
}

/// The labels of the node, and where it is, which one of them can say.
fn labels(
    sources: &Sources,
    static_labels: &BTreeMap<String, String>,
    given: &BTreeMap<String, String>,
) -> (BTreeMap<String, String>, [String; 3]) {
    let mut labels = if static_labels.is_empty() { given.clone() } else { static_labels.clone() };
    if let Some(own) = &sources.labels {
        labels.clone_from(static_labels);
        labels.extend(
            own.iter().filter(|(key, _)| *key != REVISION_LABEL).map(|(k, v)| (k.clone(), v.clone())),
        );
    }
    let label = LOCALITY_LABELS.iter().find_map(|label| labels.get(*label)).cloned().unwrap_or_default();
    if label.is_empty() {
        return (labels, Default::default());
    }
    let locality = if label.contains('/') { label } else { label.replace('.', "/") };
    let mut parts = locality.split('/').map(str::to_owned);
    let parts = [(); 3].map(|()| parts.next().unwrap_or_default());
    labels.insert("istio-locality".to_owned(), locality);
    (labels, parts)
}

pub(crate) fn without_duplicates(texts: &[String]) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    texts.iter().filter(|text| seen.insert(text.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests;
