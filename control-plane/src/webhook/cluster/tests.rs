use super::*;

#[test]
fn only_entries_that_lack_the_bundle_are_patched() {
    let bundle = STANDARD.encode("ours");
    let mut configuration = json!({
        "metadata": {"resourceVersion": "7"},
        "webhooks": [{"clientConfig": {"caBundle": bundle}}, {"clientConfig": {}}, {"clientConfig": {"caBundle": "b2xk"}}],
    });
    let patch = announcement(&configuration, "ours").expect("a patch");
    let expected = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": bundle},
        {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": bundle},
    ]);
    assert_eq!(patch, expected);
    let operations: json_patch::Patch = serde_json::from_value(patch).expect("a patch");
    json_patch::patch(&mut configuration, &operations).expect("fits");
    assert_eq!(announcement(&configuration, "ours"), None);
}

#[test]
fn a_foreign_secret_is_an_error() {
    for data in [json!(null), json!({}), json!({KEY: "no base64!"}), json!({KEY: "e30="})] {
        decoded(&json!({"data": data})).expect_err("no authority");
    }
}
