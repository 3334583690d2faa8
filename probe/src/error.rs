//! The one error of a configuration: which key, with which value, and why not.

use crate::json::Json;

/// A configuration that is refused as a whole. Its text is `<key> = <value>: <reason>`, for example
/// `probers["/app-health/app/livez"].httpGet.port = 70000: must be 1 to 65535`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {reason}")]
pub struct ConfigError {
    /// Where: a dotted path, map keys in brackets as JSON strings.
    pub key: String,
    /// What stands there, as JSON in printable ASCII, cut at 64 bytes; `…` where it is too large to show.
    pub value: String,
    /// Why that cannot be, and what can.
    pub reason: String,
}

impl ConfigError {
    /// An error about the value at `key`.
    pub(crate) fn new(key: impl Into<String>, value: &Json, reason: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.excerpt(), reason: reason.into() }
    }

    /// An error about a text that is not JSON.
    pub(crate) fn text(key: &str, text: &[u8], reason: impl Into<String>) -> Self {
        let text = Json::String(String::from_utf8_lossy(text).into_owned());
        Self::new(key, &text, reason)
    }

    /// An error about a value that is too large: `what` is the limit with its unit.
    pub(crate) fn limit(key: impl Into<String>, what: &str) -> Self {
        Self { key: key.into(), value: "…".into(), reason: format!("more than {what}") }
    }
}
