use serde_json::json;

use super::*;

#[test]
fn objects_of_a_controller_are_removed() {
    let item = |name: &str, owners: Value| json!({"metadata": {"name": name, "ownerReferences": owners}});
    let mut page = json!({"items": [
        item("alone", json!(null)),
        item("owned", json!([{"kind": "ReplicaSet", "controller": true}])),
        item("referenced", json!([{"kind": "Shop"}])),
    ]});
    remove_owned(&mut page);
    let names: Vec<&str> =
        pod::list(&page, "items").iter().map(|item| pod::name(&item["metadata"])).collect();
    assert_eq!(names, ["alone", "referenced"]);
}

#[test]
fn a_missing_permission_is_named_with_all_others() {
    let error = failure(ListError::Forbidden, "jobs.batch", None);
    assert_eq!(error.code(), 66);
    let text = error.to_string();
    assert!(text.starts_with("--cluster: cannot list jobs.batch in all namespaces: forbidden"), "{text}");
    for (_, _, resource) in RESOURCES {
        assert!(text.contains(resource), "{resource}: {text}");
    }
}

#[test]
fn a_continue_token_is_encoded() {
    assert_eq!(percent_encoded("eyJ2+/=&.x"), "eyJ2%2B%2F%3D%26.x");
}
