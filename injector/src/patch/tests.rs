use serde_json::json;

use super::*;

#[test]
fn equal_values_result_in_an_empty_patch() {
    let value = json!({"a": [1, null], "b": {}});
    assert_eq!(patch(&value, &value), None);
}

#[test]
fn names_with_slash_and_tilde_are_escaped() {
    let (before, after) = (json!({"a/b~c": {"x": 1}, "n": null}), json!({"a/b~c": {"x": 2}, "n": null}));
    let operations: serde_json::Value =
        serde_json::from_slice(&patch(&before, &after).expect("a patch")).expect("JSON");
    assert_eq!(operations, json!([{"op": "replace", "path": "/a~1b~0c/x", "value": 2}]));
}
