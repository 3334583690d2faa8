//! The probe as the user wrote it.

use injector::{Handler, HandlerField, HandlerKind, ORIGINAL_PROBES_ANNOTATION, Probe};
use serde_json::Value;

use super::table::{self, Entry};
use crate::container::Container;
use crate::requests::is_rewritten;

/// Returns the original of a rewritten probe: from the annotation, or else what the prober table
/// has, which lacks the thresholds.
pub(super) fn original(pod: &Value, container: &Container<'_>, sent: Probe) -> Option<Value> {
    if !is_rewritten(sent) {
        return None;
    }
    let annotation = pod["metadata"]["annotations"][ORIGINAL_PROBES_ANNOTATION].as_str();
    let originals: Option<Value> = annotation.and_then(|text| serde_json::from_str(text).ok());
    let original = originals.map(|originals| originals[container.name][sent.kind.field()].clone());
    original.filter(Value::is_object).or_else(|| {
        let path = sent.value["httpGet"]["path"].as_str()?;
        match table::entry(pod, path) {
            Entry::Declared(probe) => Some(probe),
            Entry::Missing(_) | Entry::Unknown => None,
        }
    })
}

/// Returns a field that is a text, or its default; nothing if the handler does not have the field.
pub(super) fn text(kind: HandlerKind, fields: &Value, field: HandlerField) -> &str {
    let default = if kind.has(field) { field.default_text() } else { return "" };
    fields[field.name()].as_str().unwrap_or(default)
}

/// Describes a probe as kubectl does: `http-get http://:8080/ready timeout=1s period=10s
/// #failure=3`.
pub(super) fn describe(probe: Probe) -> String {
    let port = |fields: &Value| match &fields["port"] {
        Value::String(name) => name.clone(),
        port => port.to_string(),
    };
    let handler = match probe.handler() {
        Some(Handler::Network(kind, fields)) => {
            let text = |field| text(kind, fields, field);
            let origin = match kind.has(HandlerField::Scheme) {
                true => {
                    format!("{}://{}", text(HandlerField::Scheme).to_lowercase(), text(HandlerField::Host))
                }
                false => String::new(),
            };
            let (path, service) = (text(HandlerField::Path), text(HandlerField::Service));
            let target = format!("{} {origin}:{}{path} {service}", kind.kubectl_word(), port(fields));
            target.trim_end().to_owned()
        }
        Some(Handler::Unknown(name)) => name.to_owned(),
        Some(Handler::Exec(_) | Handler::Sleep(_)) | None => "exec".to_owned(),
    };
    let (timeout, period, failures) = (probe.timeout(), probe.period(), probe.failure_threshold());
    format!("{handler} timeout={timeout}s period={period}s #failure={failures}")
}
