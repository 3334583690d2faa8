//! The error type of the plugin configuration: it names the key, the value and the reason.

use super::Json;

/// An invalid value, which rejects the whole configuration. The text is `<key> = <value>:
/// <reason>`, for example `probers["/app-health/app/livez"].httpGet.port = 70000: must be 1 to
/// 65535`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {reason}")]
pub struct ConfigError {
    /// The dotted path of the value; map keys are in brackets as JSON strings.
    pub key: String,
    /// The value as JSON in printable ASCII, cut at 64 bytes; `…` if it is too large to show.
    pub value: String,
    /// The reason, and what would be valid.
    pub reason: String,
}

impl ConfigError {
    pub(crate) fn new(key: impl Into<String>, value: &Json, reason: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.excerpt(), reason: reason.into() }
    }

    /// Returns an error about a text that is not valid JSON.
    pub(crate) fn syntax(key: &str, text: &[u8], reason: impl Into<String>) -> Self {
        let text = Json::String(String::from_utf8_lossy(text).into_owned());
        Self::new(key, &text, reason)
    }

    /// Returns an error about a value that is too large; `what` is the limit with its unit.
    pub(crate) fn too_large(key: impl Into<String>, what: &str) -> Self {
        Self { key: key.into(), value: "…".into(), reason: format!("more than {what}") }
    }
}
