use super::*;

#[test]
fn only_webhooks_without_the_bundle_are_patched() {
    let bundle = STANDARD.encode("ours");
    let mut configuration = json!({
        "metadata": {"resourceVersion": "7"},
        "webhooks": [{"clientConfig": {"caBundle": bundle}}, {"clientConfig": {}}, {"clientConfig": {"caBundle": "b2xk"}}],
    });
    let patch = bundle_patch(&configuration, "ours").expect("a patch");
    let expected = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": bundle},
        {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": bundle},
    ]);
    assert_eq!(patch, expected);
    let operations: json_patch::Patch = serde_json::from_value(patch).expect("a patch");
    json_patch::patch(&mut configuration, &operations).expect("fits");
    assert_eq!(bundle_patch(&configuration, "ours"), None);
}

#[test]
fn a_secret_of_another_program_is_an_error() {
    for data in [json!(null), json!({}), json!({KEY: "no base64!"}), json!({KEY: "e30="})] {
        decoded(&json!({"data": data})).expect_err("no authority");
    }
}
