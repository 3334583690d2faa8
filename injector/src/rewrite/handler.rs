//! Reads one declared probe or hook, and makes its entry in the table.

use probe::{HandlerField, HandlerKind, ProxyPorts};
use serde_json::{Map, Value, json};

use super::prober_env;
use crate::container::Container;
use crate::declared_probe::{Handler, Probe};
use crate::pod;
use crate::warning::{Code, quote};

/// The maximum `timeoutSeconds` that Kubernetes accepts.
const LONGEST: u64 = 0x7fff_ffff;

/// The code and text of the warning about a probe that is not rewritten.
pub(super) type Refusal = (Code, String);

/// The single network handler of a probe or hook with its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Declared<'a> {
    pub kind: HandlerKind,
    fields: &'a Map<String, Value>,
}

/// Reads the handler of a probe or hook. Returns `None` if it does not use the network, and an error
/// if it cannot be rewritten.
pub(super) fn declared(probe: Probe) -> Option<Result<Declared, Refusal>> {
    let refuse = |code, text: &str| Some(Err((code, text.to_owned())));
    if !probe.value.is_object() {
        return refuse(Code::Malformed, "must be an object");
    }
    match probe.handlers().as_slice() {
        [] => refuse(Code::Handler, "no supported handler"),
        [Handler::Exec(_) | Handler::Sleep(_)] => None,
        [Handler::Unknown(name)] => {
            refuse(Code::Handler, &format!("handler {} is not supported", printable(name)))
        }
        [Handler::Network(HandlerKind::TcpSocket, _)] if probe.kind.is_hook() => {
            refuse(Code::HookTcp, "kubelet does not support tcpSocket hooks")
        }
        [Handler::Network(kind, handler)] => match handler.as_object() {
            None => {
                let text = format!("{} = {}: must be an object", kind.name(), quote(handler));
                refuse(Code::Malformed, &text)
            }
            Some(fields) => match unknown(*kind, fields) {
                Some(field) => refuse(Code::Handler, &format!("field {field} is not supported")),
                None => Some(Ok(Declared { kind: *kind, fields })),
            },
        },
        _ => refuse(Code::Handler, "more than one handler"),
    }
}

/// Returns the name of a field in printable ASCII.
fn printable(name: &str) -> String {
    quote(&json!(name)).trim_matches('"').to_owned()
}

/// Returns a field that the injector does not know. Its meaning would be lost, so the probe is not
/// rewritten.
fn unknown(kind: HandlerKind, handler: &Map<String, Value>) -> Option<String> {
    let name = kind.name();
    let stray = |fields: &Map<String, Value>, known: &[&str]| {
        let mut stray =
            fields.iter().filter(|(key, value)| !value.is_null() && !known.contains(&key.as_str()));
        stray.next().map(|(key, _)| printable(key))
    };
    let known: Vec<&str> = kind.fields().iter().map(|field| field.name()).collect();
    if let Some(key) = stray(handler, &known) {
        return Some(format!("{name}.{key}"));
    }
    let headers = handler.get("httpHeaders").and_then(Value::as_array)?;
    headers.iter().enumerate().find_map(|(index, header)| {
        let key = stray(header.as_object()?, &["name", "value"])?;
        Some(format!("{name}.httpHeaders[{index}].{key}"))
    })
}

impl<'a> Declared<'a> {
    fn field(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// Returns the port as a number. A string is the name of a port of the same container, or else
    /// a number.
    pub(super) fn port(&self, container: &Container) -> Result<Value, Refusal> {
        let declared = self.fields.get("port").unwrap_or(&Value::Null);
        let Value::String(text) = declared else { return Ok(declared.clone()) };
        let number = || text.parse::<i64>().ok().map(Value::from);
        container.named_port(text).map(|port| port["containerPort"].clone()).or_else(number).ok_or_else(
            || (Code::NamedPort, format!("port {} is not a port of this container", quote(declared))),
        )
    }

    /// Returns the text of the handler's entry under `key`.
    pub(super) fn entry(
        &self,
        container: &Container,
        timeout: Option<Value>,
        key: &str,
        status_port: u16,
    ) -> Result<String, Refusal> {
        let name = self.kind.name();
        match self.field("host").map(|host| (host, host.as_str())) {
            None | Some((_, Some(""))) => {}
            Some((host, None)) => {
                return Err((Code::Malformed, format!("{name}.host = {}: must be a string", quote(host))));
            }
            Some((host, Some(_))) => {
                let text = format!("host {}: kubelet connects to this host, not to the Pod", quote(host));
                return Err((Code::Host, text));
            }
        }
        let port = self.port(container)?;
        let number = port.as_u64().and_then(|port| u16::try_from(port).ok());
        if number.is_some_and(|port| ProxyPorts::new([status_port]).contains(port)) {
            return Err((Code::OwnPort, format!("port {port} is a port of the proxy")));
        }
        let fields = self.kind.fields().iter();
        let fields =
            fields.filter_map(|field| Some((field.name().to_owned(), self.entry_field(*field, &port)?)));
        let mut value = json!({ name: Map::from_iter(fields) });
        if let Some(timeout) = timeout {
            value["timeoutSeconds"] = timeout;
        }
        prober_env::validated_entry(key, &value, status_port).map_err(|text| (Code::Malformed, text))
    }

    /// Returns a field as the entry has it, with Kubernetes' default.
    fn entry_field(&self, field: HandlerField, port: &Value) -> Option<Value> {
        let declared = self.field(field.name());
        match field {
            HandlerField::Port | HandlerField::PortNumber => Some(port.clone()),
            HandlerField::Host => None,
            HandlerField::Path | HandlerField::Service => Some(
                declared.filter(|text| **text != "").cloned().unwrap_or_else(|| field.default_text().into()),
            ),
            HandlerField::Scheme => Some(match declared.map(|scheme| (scheme, scheme.as_str())) {
                None | Some((_, Some(""))) => field.default_text().into(),
                Some((_, Some(scheme))) => scheme.to_ascii_uppercase().into(),
                Some((other, None)) => other.clone(),
            }),
            HandlerField::HttpHeaders => match declared? {
                Value::Array(headers) if headers.is_empty() => None,
                Value::Array(headers) => Some(headers.iter().map(header).collect()),
                other => Some(other.clone()),
            },
            HandlerField::Mode => declared.cloned(),
        }
    }

    /// Returns true if the handler is what the injector wrote for `key`, with any port.
    pub(super) fn is_rewritten_to(&self, key: &str) -> bool {
        let field = |key: &str| self.fields.get(key).and_then(Value::as_str).unwrap_or_default();
        self.kind == HandlerKind::HttpGet
            && field("path") == key
            && field("host").is_empty()
            && matches!(field("scheme").to_ascii_uppercase().as_str(), "" | "HTTP")
    }
}

fn header(header: &Value) -> Value {
    let part = |key| pod::field(header, key).cloned().unwrap_or_else(|| "".into());
    if header.is_object() { json!({"name": part("name"), "value": part("value")}) } else { header.clone() }
}

/// Returns the timeout of the entry: the declared one, or kubelet's default of 1 if it is absent or
/// 0.
pub(super) fn timeout(probe: &Value) -> Value {
    match pod::field(probe, "timeoutSeconds") {
        None => 1.into(),
        Some(seconds) if *seconds == 0 => 1.into(),
        Some(seconds) => seconds.clone(),
    }
}

/// Returns the timeout for kubelet, which is one second longer, so that the filter times out first
/// and reports the reason.
pub(super) fn kubelet_timeout(timeout: &Value) -> Value {
    timeout.as_u64().map_or_else(|| timeout.clone(), |seconds| (seconds + 1).min(LONGEST).into())
}

/// Returns the `httpGet` handler that replaces the declared one.
pub(super) fn replacement(key: &str, status_port: u16) -> Value {
    json!({"path": key, "port": status_port, "scheme": "HTTP"})
}
