use serde_json::json;

use super::*;
use crate::kinds::Kinds;

#[test]
fn lists_in_lists() {
    let pod =
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": {"containers": 1}});
    let document = json!({"kind": "List", "apiVersion": "v1", "items": [{"kind": "ConfigMap"}, {"kind": "List", "items": [pod]}]});
    assert!(
        find_pods(&document, &Kinds::default()).expect("a list")[0]
            .field("spec")
            .starts_with("items[1].items[0].")
    );
}

#[test]
fn a_location_knows_the_object_and_the_pod() {
    let template = json!({"spec": {"containers": []}});
    let job = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "x"}, "spec": {"template": template}});
    for (document, object, pod) in [
        (job.clone(), "metadata.name", "spec.template.spec"),
        (
            json!({"kind": "List", "apiVersion": "v1", "items": [job]}),
            "items[0].metadata.name",
            "items[0].spec.template.spec",
        ),
    ] {
        let location = find_pods(&document, &Kinds::default()).expect("a Job").remove(0);
        assert_eq!(location.object_in(&document)["kind"], "Job");
        assert_eq!(location.pod(&document), &template);
        assert_eq!(
            (location.object_field("metadata.name").as_str(), location.field("spec").as_str()),
            (object, pod)
        );
    }
}
