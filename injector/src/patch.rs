//! Two values to the difference that turns one into the other (RFC 6902).

use serde_json::Value;

/// The operations that make `after` of `before`; `None` where they are equal.
///
/// `before` has to be the value as it was sent: what a typed reading drops would come back as `remove`.
pub fn patch(before: &Value, after: &Value) -> Option<Vec<u8>> {
    let patch = json_patch::diff(before, after);
    (!patch.0.is_empty()).then(|| serde_json::to_vec(&patch).expect("a patch can be written as JSON"))
}

#[cfg(test)]
mod tests;
