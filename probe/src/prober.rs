//! A prober: a Kubernetes probe or lifecycle handler with validated fields, and its timeout.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::handler_kind::{HandlerField, HandlerKind};
use crate::json::{self, ConfigError, Json};
use crate::path::ProbeKind;
use crate::ports::ProxyPorts;
use crate::scheme::Scheme;
use crate::url::Url;

const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 16 << 10;
const MAX_PATH_BYTES: usize = 8 << 10;
/// One day in seconds: the maximum timeout, and the default for hooks, for which kubelet sets none.
const DAY: u64 = 86_400;

/// One declared probe, with the fields of Istio's `Prober`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prober {
    /// The action of the probe.
    pub handler: Handler,
    /// The declared `timeoutSeconds`, at most one day. If it is absent or 0: 1 s for a probe, one
    /// day for a hook.
    pub timeout: Duration,
}

/// The probe handlers of Kubernetes that reach the application over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handler {
    /// A Kubernetes `httpGet`.
    HttpGet(HttpGet),
    /// A Kubernetes `tcpSocket`.
    TcpSocket(TcpSocket),
    /// A Kubernetes `grpc`.
    Grpc(Grpc),
}

/// An `httpGet` handler: the status of a GET decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGet {
    /// The path as declared; may be empty, and may contain a query.
    pub path: String,
    /// The port, 1 to 65535; never a port of the proxy.
    pub port: u16,
    /// The scheme, by default HTTP.
    pub scheme: Scheme,
    /// The headers as declared, in their order.
    pub headers: Vec<Header>,
}

/// A `tcpSocket` handler: an established connection is a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// The port, 1 to 65535; never a port of the proxy.
    pub port: u16,
}

/// A `grpc` handler, which calls `grpc.health.v1.Health/Check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grpc {
    /// The port, 1 to 65535; never a port of the proxy.
    pub port: u16,
    /// The name of the service; empty for the whole server.
    pub service: String,
    /// The mode, by default plaintext.
    pub mode: GrpcMode,
}

/// The value of `grpc.mode` (KEP-4939).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcMode {
    /// HTTP/2 with prior knowledge.
    Plaintext,
    /// TLS without certificate verification.
    Tls,
}

/// A declared header of `httpGet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, a valid header token, in the declared case.
    pub name: String,
    /// The value, without control characters except tab.
    pub value: String,
}

impl Header {
    /// Returns true if the header has this name; ASCII case is ignored.
    pub fn has_name(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns the value as Go's client writes it, without leading and trailing whitespace.
    pub fn trimmed_value(&self) -> &str {
        self.value.trim_matches([' ', '\t', '\n', '\r'])
    }
}

/// The context in which a prober is read: its key for errors, its kind, and the ports that it must
/// not use.
pub(crate) struct ReadContext<'a> {
    pub(crate) key: String,
    pub(crate) kind: ProbeKind,
    pub(crate) proxy_ports: &'a ProxyPorts,
    pub(crate) warnings: &'a mut Vec<String>,
}

impl Prober {
    /// Returns the port of the application.
    pub fn port(&self) -> u16 {
        match &self.handler {
            Handler::HttpGet(http) => http.port,
            Handler::TcpSocket(tcp) => tcp.port,
            Handler::Grpc(grpc) => grpc.port,
        }
    }

    /// Returns the handler if it is an `httpGet`, the one kind that declares headers.
    pub fn http_get(&self) -> Option<&HttpGet> {
        match &self.handler {
            Handler::HttpGet(http) => Some(http),
            Handler::TcpSocket(_) | Handler::Grpc(_) => None,
        }
    }

    /// Returns the entry as JSON. The keys are sorted, which serde_json may not do.
    pub(crate) fn to_json(&self) -> Value {
        let (kind, handler) = match &self.handler {
            Handler::HttpGet(http) => (HandlerKind::HttpGet, http_get_json(http)),
            Handler::TcpSocket(tcp) => (HandlerKind::TcpSocket, json!({"port": tcp.port})),
            Handler::Grpc(grpc) => {
                let mode = match grpc.mode {
                    GrpcMode::Plaintext => "Plaintext",
                    GrpcMode::Tls => "TLS",
                };
                (HandlerKind::Grpc, json!({"mode": mode, "port": grpc.port, "service": grpc.service}))
            }
        };
        json!(BTreeMap::from([(kind.name(), handler), ("timeoutSeconds", self.timeout.as_secs().into())]))
    }

    /// Reads one entry. Like Go, it ignores the ASCII case of field names and ignores unknown
    /// fields.
    pub(crate) fn read(value: &Json, context: &mut ReadContext) -> Result<Self, ConfigError> {
        let key = context.key.clone();
        let fields = fields(value, &key)?;
        let handlers = HandlerKind::ALL
            .into_iter()
            .filter_map(|kind| Some((kind, json::field(fields, kind.name(), true)?)))
            .collect::<Vec<_>>();
        let [(kind, handler)] = handlers.as_slice() else {
            let names = HandlerKind::ALL.map(HandlerKind::name).join(", ");
            return Err(ConfigError::new(key, value, format!("needs exactly one of {names}")));
        };
        let handler_key = format!("{key}.{}", kind.name());
        let inner = self::fields(handler, &handler_key)?;
        let port = port(inner, &format!("{handler_key}.port"), context.proxy_ports)?;
        if kind.has(HandlerField::Host) && json::field(inner, "host", true).is_some() {
            context
                .warnings
                .push(format!("{handler_key}.host: ignored, only the pod's own address is dialed"));
        }
        let handler = match kind {
            HandlerKind::HttpGet => Handler::HttpGet(http_get(inner, &handler_key, port)?),
            HandlerKind::TcpSocket => Handler::TcpSocket(TcpSocket { port }),
            HandlerKind::Grpc => Handler::Grpc(grpc(inner, &handler_key, port)?),
        };
        Ok(Self { handler, timeout: timeout(fields, &key, context.kind)? })
    }
}

fn fields<'a>(value: &'a Json, key: &str) -> Result<&'a [(String, Json)], ConfigError> {
    let fields = value.object(key)?;
    if json::has_duplicate_key(fields, true) {
        return Err(ConfigError::new(key, value, "duplicate key"));
    }
    Ok(fields)
}

fn port(fields: &[(String, Json)], key: &str, proxy_ports: &ProxyPorts) -> Result<u16, ConfigError> {
    let value = json::field(fields, "port", true).unwrap_or(&Json::Null);
    let range = || ConfigError::new(key, value, "must be 1 to 65535");
    if *value == Json::Null {
        return Err(range());
    }
    let port = u16::try_from(value.integer(key)?).ok().filter(|port| *port > 0).ok_or_else(range)?;
    if proxy_ports.contains(port) {
        return Err(ConfigError::new(key, value, "is a port of the proxy"));
    }
    Ok(port)
}

fn timeout(fields: &[(String, Json)], key: &str, kind: ProbeKind) -> Result<Duration, ConfigError> {
    let default = if kind.is_hook() { DAY } else { 1 };
    let Some(value) = json::field(fields, "timeoutSeconds", true) else {
        return Ok(Duration::from_secs(default));
    };
    let key = format!("{key}.timeoutSeconds");
    let seconds = match value.integer(&key)? {
        ..0 => return Err(ConfigError::new(key, value, "must be 0 or more")),
        0 => default,
        seconds @ 1..=0x7fff_ffff => seconds.unsigned_abs().min(DAY),
        _ => return Err(ConfigError::new(key, value, "must be 2147483647 or less")),
    };
    Ok(Duration::from_secs(seconds))
}

fn http_get(fields: &[(String, Json)], key: &str, port: u16) -> Result<HttpGet, ConfigError> {
    let path = text(fields, key, "path")?;
    let path_key = format!("{key}.path");
    if path.len() > MAX_PATH_BYTES {
        return Err(ConfigError::too_large(path_key, "8 KiB"));
    }
    let scheme = match text(fields, key, "scheme")?.to_ascii_uppercase().as_str() {
        "" | "HTTP" => Scheme::Http,
        "HTTPS" => Scheme::Https,
        _ => return Err(field_error(fields, key, "scheme", "must be HTTP or HTTPS")),
    };
    let url = Url::probe(scheme, "0.0.0.0:1", path);
    // A user name in the path would become an `Authorization` header; such a header must be
    // declared in `httpHeaders`.
    if url.user.is_some() || !url.is_sendable() {
        return Err(field_error(fields, key, "path", "cannot be sent as kubelet sends it"));
    }
    let headers = headers(fields, &format!("{key}.httpHeaders"))?;
    Ok(HttpGet { path: path.into(), port, scheme, headers })
}

fn http_get_json(http: &HttpGet) -> Value {
    let header = |header: &Header| json!({"name": header.name, "value": header.value});
    let headers: Vec<Value> = http.headers.iter().map(header).collect();
    let scheme = http.scheme.word().to_ascii_uppercase();
    json!({"httpHeaders": headers, "path": http.path, "port": http.port, "scheme": scheme})
}

fn grpc(fields: &[(String, Json)], key: &str, port: u16) -> Result<Grpc, ConfigError> {
    let mode = match text(fields, key, "mode")?.to_ascii_lowercase().as_str() {
        "" | "plaintext" => GrpcMode::Plaintext,
        "tls" => GrpcMode::Tls,
        _ => return Err(field_error(fields, key, "mode", "must be Plaintext or TLS")),
    };
    Ok(Grpc { port, service: text(fields, key, "service")?.into(), mode })
}

/// Returns a string field; empty if absent.
fn text<'a>(fields: &'a [(String, Json)], key: &str, name: &str) -> Result<&'a str, ConfigError> {
    json::field(fields, name, true).map_or(Ok(""), |value| value.string(&format!("{key}.{name}")))
}

fn field_error(fields: &[(String, Json)], key: &str, name: &str, reason: &str) -> ConfigError {
    let value = json::field(fields, name, true).unwrap_or(&Json::Null);
    ConfigError::new(format!("{key}.{name}"), value, reason)
}

fn headers(fields: &[(String, Json)], key: &str) -> Result<Vec<Header>, ConfigError> {
    let Some(value) = json::field(fields, "httpHeaders", true) else { return Ok(Vec::new()) };
    let elements = value.array(key)?;
    if elements.len() > MAX_HEADERS {
        return Err(ConfigError::too_large(key, &format!("{MAX_HEADERS} headers")));
    }
    let headers = elements
        .iter()
        .enumerate()
        .map(|(index, element)| header(element, &format!("{key}[{index}]")))
        .collect::<Result<Vec<_>, _>>()?;
    let bytes: usize =
        headers.iter().map(|header| header.name.len().saturating_add(header.value.len())).sum();
    if bytes > MAX_HEADER_BYTES {
        return Err(ConfigError::too_large(key, "16 KiB of headers"));
    }
    Ok(headers)
}

fn header(element: &Json, key: &str) -> Result<Header, ConfigError> {
    let fields = fields(element, key)?;
    let (name, value) = (text(fields, key, "name")?, text(fields, key, "value")?);
    let refuse = |field: &str, reason: &str| Err(field_error(fields, key, field, reason));
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return refuse("name", "must be a header name");
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("x-envoy-") || lower.starts_with("x-app-health-") {
        return refuse("name", "is reserved for Envoy and cannot be sent to the application");
    }
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return refuse("value", "must not contain CR, LF or NUL");
    }
    if value.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        return refuse("value", "must not contain control characters");
    }
    let header = Header { name: name.into(), value: value.into() };
    // The characters that Go's client accepts in a host. For any other value it would send an empty
    // `Host`.
    let host = |byte: u8| byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(&byte);
    if header.has_name("host") && !header.value.bytes().all(host) {
        return refuse("value", "must be a host");
    }
    Ok(header)
}

#[cfg(test)]
mod tests;
