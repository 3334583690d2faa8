use serde_json::json;

use super::*;

#[test]
fn lists_in_lists() {
    let pod =
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": {"containers": 1}});
    let document = json!({"kind": "List", "apiVersion": "v1", "items": [{"kind": "ConfigMap"}, {"kind": "List", "items": [pod]}]});
    assert!(find_pods(&document).expect("a list")[0].field("spec").starts_with("items[1].items[0]."));
}
