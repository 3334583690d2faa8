//! YAML documents of Istio's configuration.

use serde_json::Value;

/// Depth of nested values.
const DEPTH: usize = 64;

/// Reads one document of YAML or JSON.
///
/// # Errors
/// What is not YAML, or is nested too deeply.
pub fn parse(text: &str) -> Result<Value, String> {
    let budget = serde_saphyr::budget! { max_depth: DEPTH, flow_nesting_limit: DEPTH };
    let options = serde_saphyr::options! { budget: budget, legacy_octal_numbers: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As `sigs.k8s.io/yaml` of Istio's agent reads it.
    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        for (text, expected) in [
            ("yes", json!(true)),
            ("NO", json!(false)),
            ("on", json!(true)),
            ("~", json!(null)),
            ("010", json!(8)),
            ("-010", json!(-8)),
            ("0o10", json!(8)),
            ("0x10", json!(16)),
            ("0b11", json!(3)),
            ("1_000", json!(1000)),
            ("12:30", json!("12:30")),
            ("2001-01-01", json!("2001-01-01")),
            ("!!str 1", json!("1")),
            ("'yes'", json!("yes")),
        ] {
            assert_eq!(parse(&format!("a: {text}")), Ok(json!({ "a": expected })), "{text}");
        }
        assert_eq!(parse("a: &x 1\nb: *x\n<<: {c: 2}"), Ok(json!({"a": 1, "b": 1, "c": 2})));
    }

    /// Istio's agent would use the last one, or the first document.
    #[test]
    fn what_is_written_twice_is_refused() {
        for text in ["a: 1\na: 2", "a: 1\n---\na: 2"] {
            parse(text).expect_err(text);
        }
    }
}
