//! Computes a JSON Patch (RFC 6902).

use serde_json::Value;

/// Returns the patch from `before` to `after`; `None` if they are equal.
///
/// `before` must be the value exactly as the API server sent it: a field that a typed struct drops
/// would be removed by the patch.
pub fn patch(before: &Value, after: &Value) -> Option<Vec<u8>> {
    let patch = json_patch::diff(before, after);
    (!patch.0.is_empty()).then(|| serde_json::to_vec(&patch).expect("a patch can be written as JSON"))
}

#[cfg(test)]
mod tests;
