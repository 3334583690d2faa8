use serde_json::json;

use super::*;
use crate::kinds::Kinds;

#[test]
fn lists_in_lists() {
    let pod =
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": {"containers": 1}});
    let document = json!({"kind": "List", "apiVersion": "v1", "items": [{"kind": "ConfigMap"}, {"kind": "List", "items": [pod]}]});
    assert!(
        locate_pods(&document, &Kinds::default())[0]
            .as_ref()
            .expect("a Pod")
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
        let location = locate_pods(&document, &Kinds::default()).remove(0).expect("a Job");
        assert_eq!(location.object_in(&document)["kind"], "Job");
        assert_eq!(location.pod(&document), &template);
        assert_eq!(
            (location.object_field("metadata.name").as_str(), location.field("spec").as_str()),
            (object, pod)
        );
    }
}

/// Of the templates that flags name, an object may have one.
#[test]
fn an_object_has_one_of_two_templates() {
    let kinds = Kinds::new(&["Game=spec.a".parse().expect("a path"), "Game=spec.b".parse().expect("a path")]);
    let game = |spec: Value| json!({"kind": "Game", "apiVersion": "example.com/v1", "spec": spec});
    let fields = |document: &Value| -> Vec<String> {
        let located = locate_pods(document, &kinds).into_iter();
        located.map(|found| found.map_or_else(|error| error.error.field, |site| site.field(""))).collect()
    };
    assert_eq!(fields(&game(json!({"a": {}}))), ["spec.a"]);
    assert_eq!(fields(&game(json!({"a": {}, "b": null}))), ["spec.a"]);
    assert_eq!(fields(&game(json!({"a": {}, "b": {}}))), ["spec.a", "spec.b"]);
    // A field of another type is an error, and so is an object without any of them.
    assert_eq!(fields(&game(json!({"a": {}, "b": 1}))), ["spec.a", "spec.b"]);
    assert_eq!(fields(&game(json!({}))), ["spec.a", "spec.b"]);
}

#[test]
fn the_objects_of_typed_lists_are_located() {
    let pod = json!({"metadata": {"name": "x"}, "spec": {"containers": []}});
    for (kind, version, object) in [("PodList", "v1", "Pod/x"), ("DeploymentList", "apps/v1", "Deployment/x")]
    {
        let document = json!({"kind": kind, "apiVersion": version, "items": [pod]});
        let located = locate_objects(&document, &Kinds::default());
        let found: Vec<_> =
            located.iter().map(|found| (found.object.as_str(), found.object_field(""))).collect();
        assert_eq!(found, [(object, "items[0]".to_owned())]);
    }
}
