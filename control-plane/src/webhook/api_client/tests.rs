use super::*;

#[test]
fn only_webhooks_without_the_bundle_are_patched() {
    let bundle = STANDARD.encode("ours");
    let webhook = |bundle: Value| {
        json!({
            "name": "a", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"caBundle": bundle},
        })
    };
    let mut object = json!({
        "metadata": {"resourceVersion": "7"},
        "webhooks": [webhook(json!(bundle)), webhook(Value::Null), webhook(json!("b2xk"))],
    });
    let configuration = |object: &Value| serde_json::from_value(object.clone()).expect("a configuration");
    let patch = bundle_patch(&configuration(&object), "ours").expect("a patch");
    let expected = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": bundle},
        {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": bundle},
    ]);
    assert_eq!(patch, expected);
    let operations: json_patch::Patch = serde_json::from_value(patch).expect("a patch");
    json_patch::patch(&mut object, &operations).expect("fits");
    assert_eq!(bundle_patch(&configuration(&object), "ours"), None);
}

#[test]
fn a_secret_of_another_program_is_an_error() {
    for data in [json!(null), json!({}), json!({KEY: "e30="})] {
        let secret = serde_json::from_value(json!({"data": data})).expect("a Secret");
        authority(&secret).expect_err("no authority");
    }
}
