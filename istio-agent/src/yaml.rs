//! YAML documents of Istio's configuration.

use serde_json::Value;

/// Depth of nested values.
const DEPTH: usize = 64;

/// Reads one document of YAML or JSON.
///
/// # Errors
/// What is not YAML, or is nested too deeply.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let budget = serde_saphyr::budget! { max_depth: DEPTH, flow_nesting_limit: DEPTH };
    let options = serde_saphyr::options! { budget: budget };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}
