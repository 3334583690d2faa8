//! The probe as the user wrote it.

use injector::ORIGINAL_PROBES_ANNOTATION;
use serde_json::Value;

use super::table::{self, Entry};
use crate::container::Container;
use crate::requests::{ProbeKind, is_rewritten};

/// Returns the original of a rewritten probe: from the annotation, or else what the prober table
/// has, which lacks the thresholds.
pub(super) fn original(pod: &Value, container: &Container<'_>, kind: ProbeKind) -> Option<Value> {
    let sent = &container.spec[kind.field()];
    if !is_rewritten(sent) {
        return None;
    }
    let annotation = pod["metadata"]["annotations"][ORIGINAL_PROBES_ANNOTATION].as_str();
    let originals: Option<Value> = annotation.and_then(|text| serde_json::from_str(text).ok());
    let original = originals.map(|originals| originals[container.name][kind.field()].clone());
    original.filter(Value::is_object).or_else(|| {
        let path = sent["httpGet"]["path"].as_str()?;
        match table::entry(pod, path) {
            Entry::Declared(probe) => Some(probe),
            Entry::Missing(_) | Entry::Unknown => None,
        }
    })
}

/// Describes a probe as kubectl does: `http-get http://:8080/ready timeout=1s period=10s
/// #failure=3`.
pub(super) fn describe(probe: &Value) -> String {
    let http = &probe["httpGet"];
    let port = |handler: &Value| match &handler["port"] {
        Value::String(name) => name.clone(),
        port => port.to_string(),
    };
    let handler = match probe {
        _ if http.is_object() => {
            let scheme = http["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
            let host = http["host"].as_str().unwrap_or_default();
            let path = http["path"].as_str().unwrap_or("/");
            format!("http-get {scheme}://{host}:{}{path}", port(http))
        }
        _ if probe["tcpSocket"].is_object() => format!("tcp-socket :{}", port(&probe["tcpSocket"])),
        _ if probe["grpc"].is_object() => {
            let service = probe["grpc"]["service"].as_str().unwrap_or_default();
            format!("grpc :{} {service}", port(&probe["grpc"])).trim_end().to_owned()
        }
        _ => "exec".to_owned(),
    };
    let number =
        |key: &str, default: u64| probe[key].as_u64().filter(|number| *number > 0).unwrap_or(default);
    format!(
        "{handler} timeout={}s period={}s #failure={}",
        number("timeoutSeconds", 1),
        number("periodSeconds", 10),
        number("failureThreshold", 3)
    )
}
