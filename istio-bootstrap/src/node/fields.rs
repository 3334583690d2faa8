//! The fields of the metadata that have a type in Istio.

use serde_json::Value;

use probe::go::parse_bool;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// A boolean in a text.
    Flag,
    /// A list of ports as JSON in a text.
    Ports,
    Number,
    Texts,
    List,
    /// Replaced by what the agent knows.
    Config,
}

pub(super) const FIELDS: &[(&str, Kind)] = &[
    ("PROXY_CONFIG", Kind::Config),
    ("ISTIO_VERSION", Kind::Text),
    ("ISTIO_REVISION", Kind::Text),
    ("LABELS", Kind::Texts),
    ("STATIC_LABELS", Kind::Texts),
    ("ANNOTATIONS", Kind::Texts),
    ("INSTANCE_IPS", Kind::Text),
    ("NAMESPACE", Kind::Text),
    ("NODE_NAME", Kind::Text),
    ("WORKLOAD_NAME", Kind::Text),
    ("INTERCEPTION_MODE", Kind::Text),
    ("SERVICE_ACCOUNT", Kind::Text),
    ("HTTP_PROXY_PORT", Kind::Text),
    ("MESH_ID", Kind::Text),
    ("CLUSTER_ID", Kind::Text),
    ("NETWORK", Kind::Text),
    ("REQUESTED_NETWORK_VIEW", Kind::Text),
    ("POD_PORTS", Kind::Ports),
    ("TLS_SERVER_CERT_CHAIN", Kind::Text),
    ("TLS_SERVER_KEY", Kind::Text),
    ("TLS_SERVER_ROOT_CERT", Kind::Text),
    ("TLS_CLIENT_CERT_CHAIN", Kind::Text),
    ("TLS_CLIENT_KEY", Kind::Text),
    ("TLS_CLIENT_ROOT_CERT", Kind::Text),
    ("BASE", Kind::Text),
    ("IDLE_TIMEOUT", Kind::Text),
    ("HTTP10", Kind::Text),
    ("GENERATOR", Kind::Text),
    ("ENABLE_SELF_DISCOVERY", Kind::Flag),
    ("DNS_CAPTURE", Kind::Flag),
    ("DNS_AUTO_ALLOCATE", Kind::Flag),
    ("DNS_PROXY_ADDR", Kind::Text),
    ("ENABLE_HBONE", Kind::Flag),
    ("DISABLE_HBONE_SEND", Kind::Flag),
    ("AUTO_REGISTER_GROUP", Kind::Text),
    ("WORKLOAD_ENTRY", Kind::Text),
    ("UNPRIVILEGED_POD", Kind::Text),
    ("PLATFORM_METADATA", Kind::Texts),
    ("STS_PORT", Kind::Text),
    ("ENVOY_STATUS_PORT", Kind::Number),
    ("ENVOY_PROMETHEUS_PORT", Kind::Number),
    ("ENVOY_SECURE_METRICS_PORT", Kind::Number),
    ("ENVOY_SECURE_MERGED_METRICS_PORT", Kind::Number),
    ("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", Kind::Flag),
    ("INBOUND_LISTENER_EXACT_BALANCE", Kind::Flag),
    ("OUTBOUND_LISTENER_EXACT_BALANCE", Kind::Flag),
    ("CLOUDRUN_ADDR", Kind::Text),
    ("METADATA_DISCOVERY", Kind::Flag),
    ("ENVOY_SKIP_DEPRECATED_LOGS", Kind::Flag),
    ("WORKLOAD_IDENTITY_SOCKET_FILE", Kind::Text),
    ("NAME", Kind::Text),
    ("OWNER", Kind::Text),
    ("PILOT_SAN", Kind::List),
    ("OUTLIER_LOG_PATH", Kind::Text),
    ("APP_CONTAINERS", Kind::Text),
    ("ISTIO_PROXY_SHA", Kind::Text),
];

impl Kind {
    /// Returns the value as Istio's agent writes it, and nothing for one that it omits.
    ///
    /// # Errors
    /// What is expected in its place.
    pub(super) fn read(self, value: &Value) -> Result<Option<Value>, &'static str> {
        match self {
            Self::Text => {
                let text = value.as_str().ok_or("a text")?;
                Ok((!text.is_empty()).then(|| text.into()))
            }
            Self::Flag => {
                let value = value.as_str().and_then(parse_bool).ok_or("a boolean in quotes")?;
                Ok(value.then(|| "true".into()))
            }
            Self::Number => {
                let number = value.as_i64().ok_or("a number")?;
                Ok((number != 0).then(|| number.into()))
            }
            Self::Ports => {
                const PORTS: &str = "a list of ports as JSON in a text";
                let text = value.as_str().ok_or(PORTS)?;
                let ports: Value = serde_json::from_str(text).map_err(|_| PORTS)?;
                let ports = ports.as_array().ok_or(PORTS)?.iter().map(port).collect::<Option<Vec<_>>>();
                let ports = ports.ok_or(PORTS)?;
                Ok((!ports.is_empty()).then(|| format!("[{}]", ports.join(",")).into()))
            }
            Self::Texts => {
                let map = value.as_object().ok_or("an object of texts")?;
                let is_texts = map.values().all(Value::is_string);
                if is_texts { Ok(Some(value.clone())) } else { Err("an object of texts") }
            }
            Self::List => {
                let list = value.as_array().ok_or("a list of texts")?;
                let is_texts = list.iter().all(Value::is_string);
                if is_texts { Ok(Some(value.clone())) } else { Err("a list of texts") }
            }
            Self::Config => {
                if value.is_object() {
                    Ok(None)
                } else {
                    Err("an object")
                }
            }
        }
    }
}

/// A port in the order of fields in which istiod has always received it.
fn port(port: &Value) -> Option<String> {
    let port = port.as_object()?;
    let text = |name: &str| port.get(name).map_or(Some(""), Value::as_str).map(Value::from);
    let name = match text("name")? {
        name if name == "" => String::new(),
        name => format!("\"name\":{name},"),
    };
    let number = port.get("containerPort").map_or(Some(0), Value::as_i64)?;
    Some(format!("{{{name}\"containerPort\":{number},\"protocol\":{}}}", text("protocol")?))
}
