//! Reads one declared probe or hook, and makes its entry in the table.

use probe::ports::ProxyPorts;
use serde_json::{Map, Value, json};

use crate::pod;
use crate::table;
use crate::warning::{Code, quote};

/// The maximum `timeoutSeconds` that Kubernetes accepts.
const LONGEST: u64 = 0x7fff_ffff;

/// The code and text of the warning about a probe that is not rewritten.
pub(super) type Reason = (Code, String);

/// The content of a declared probe or hook.
#[derive(Debug, PartialEq)]
pub(super) enum Declared<'a> {
    /// A handler that does not use the network.
    Local,
    /// Exactly one network handler with its fields.
    Handler(&'static str, &'a Map<String, Value>),
    /// A handler that cannot be rewritten.
    Wrong(Reason),
}

/// Reads `value`, which is a probe or a hook.
pub(super) fn declared(value: &Value, hook: bool) -> Declared<'_> {
    let wrong = |code, text: &str| Declared::Wrong((code, text.to_owned()));
    let Some(fields) = value.as_object() else { return wrong(Code::Malformed, "must be an object") };
    let known: &[&'static str] = if hook {
        &["exec", "sleep", "httpGet", "tcpSocket"]
    } else {
        &["exec", "httpGet", "tcpSocket", "grpc"]
    };
    let there =
        known.iter().filter_map(|name| Some((*name, fields.get(*name).filter(|value| !value.is_null())?)));
    let there: Vec<_> = there.collect();
    match there.as_slice() {
        [] => wrong(Code::Handler, "no supported handler"),
        [("exec" | "sleep", _)] => Declared::Local,
        [("tcpSocket", _)] if hook => wrong(Code::HookTcp, "kubelet does not support tcpSocket hooks"),
        [(name, handler)] => match handler.as_object() {
            None => {
                Declared::Wrong((Code::Malformed, format!("{name} = {}: must be an object", quote(handler))))
            }
            Some(handler) => match unknown(name, handler) {
                Some(field) => Declared::Wrong((Code::Handler, format!("field {field} is not supported"))),
                None => Declared::Handler(name, handler),
            },
        },
        _ => wrong(Code::Handler, "more than one handler"),
    }
}

/// Returns a field that the injector does not know. Its meaning would be lost, so the probe is not
/// rewritten.
fn unknown(name: &str, handler: &Map<String, Value>) -> Option<String> {
    let known: &[&str] = match name {
        "httpGet" => &["path", "port", "host", "scheme", "httpHeaders"],
        "tcpSocket" => &["port", "host"],
        _ => &["port", "service", "mode"],
    };
    let stray = |fields: &Map<String, Value>, known: &[&str]| {
        let mut stray =
            fields.iter().filter(|(key, value)| !value.is_null() && !known.contains(&key.as_str()));
        stray.next().map(|(key, _)| quote(&json!(key)).trim_matches('"').to_owned())
    };
    if let Some(key) = stray(handler, known) {
        return Some(format!("{name}.{key}"));
    }
    let headers = handler.get("httpHeaders").and_then(Value::as_array)?;
    headers.iter().enumerate().find_map(|(index, header)| {
        let key = stray(header.as_object()?, &["name", "value"])?;
        Some(format!("{name}.httpHeaders[{index}].{key}"))
    })
}

/// Returns the port as a number. A string is the name of a port of the same container, or else a
/// number.
pub(super) fn port(handler: &Map<String, Value>, container: &Value) -> Result<Value, Reason> {
    let declared = handler.get("port").unwrap_or(&Value::Null);
    let Value::String(text) = declared else { return Ok(declared.clone()) };
    let named = pod::list(container, "ports").iter().find(|port| !text.is_empty() && pod::name(port) == text);
    let number = || text.parse::<i64>().ok().map(Value::from);
    match named.map(|port| port["containerPort"].clone()).or_else(number) {
        Some(number) => Ok(number),
        None => Err((Code::NamedPort, format!("port {} is not a port of this container", quote(declared)))),
    }
}

/// Returns the entry of a handler in the table under `key`.
pub(super) fn entry(
    (name, handler): (&'static str, &Map<String, Value>),
    container: &Value,
    timeout: Option<&Value>,
    key: &str,
    status_port: u16,
) -> Result<String, Reason> {
    let field = |key: &str| handler.get(key).filter(|value| !value.is_null());
    if let Some(host) = field("host") {
        match host.as_str() {
            None => {
                let text = format!("{name}.host = {}: must be a string", quote(host));
                return Err((Code::Malformed, text));
            }
            Some("") => {}
            Some(_) => {
                return Err((
                    Code::Host,
                    format!("host {}: kubelet connects to this host, not to the Pod", quote(host)),
                ));
            }
        }
    }
    let port = port(handler, container)?;
    let number = port.as_u64().and_then(|port| u16::try_from(port).ok());
    if number.is_some_and(|port| ProxyPorts::new([status_port]).contains(port)) {
        return Err((Code::OwnPort, format!("port {port} is a port of the proxy")));
    }
    let fields = match name {
        "httpGet" => http_get(port, &field),
        "tcpSocket" => json!({"port": port}),
        _ => {
            let mut fields =
                json!({"port": port, "service": field("service").cloned().unwrap_or_else(|| "".into())});
            if let Some(mode) = field("mode") {
                fields["mode"] = mode.clone();
            }
            fields
        }
    };
    let mut value = json!({ name: fields });
    if let Some(timeout) = timeout {
        value["timeoutSeconds"] = timeout.clone();
    }
    table::entry(key, &value, status_port).map_err(|text| (Code::Malformed, text))
}

fn http_get<'a>(port: Value, field: &impl Fn(&str) -> Option<&'a Value>) -> Value {
    let path = field("path").filter(|path| **path != "").cloned().unwrap_or_else(|| "/".into());
    let scheme = match field("scheme").map(|scheme| (scheme, scheme.as_str())) {
        None | Some((_, Some(""))) => "HTTP".into(),
        Some((_, Some(scheme))) => scheme.to_ascii_uppercase().into(),
        Some((other, None)) => other.clone(),
    };
    let mut fields = json!({"path": path, "port": port, "scheme": scheme});
    match field("httpHeaders") {
        None => {}
        Some(Value::Array(headers)) if headers.is_empty() => {}
        Some(Value::Array(headers)) => fields["httpHeaders"] = headers.iter().map(header).collect(),
        Some(other) => fields["httpHeaders"] = other.clone(),
    }
    fields
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
pub(super) fn kubelets_timeout(timeout: &Value) -> Value {
    timeout.as_u64().map_or_else(|| timeout.clone(), |seconds| (seconds + 1).min(LONGEST).into())
}

/// Returns the `httpGet` handler that replaces the declared one.
pub(super) fn replacement(key: &str, status_port: u16) -> Value {
    json!({"path": key, "port": status_port, "scheme": "HTTP"})
}

/// Returns true if the handler is what the injector wrote for `key`, with any port.
pub(super) fn leads_to(name: &str, handler: &Map<String, Value>, key: &str) -> bool {
    let field = |key: &str| handler.get(key).and_then(Value::as_str).unwrap_or_default();
    name == "httpGet"
        && field("path") == key
        && field("host").is_empty()
        && matches!(field("scheme").to_ascii_uppercase().as_str(), "" | "HTTP")
}
