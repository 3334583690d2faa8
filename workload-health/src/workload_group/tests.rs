use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{WorkloadGroup, WorkloadTemplate};
use crate::WorkloadProbe;

fn group(spec: Value) -> Value {
    json!({"apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup", "metadata": {"name": "payments"}, "spec": spec})
}

fn check_rejected(document: Value, errors: &[&str]) {
    let found = WorkloadGroup::parse(&document).map(|checked| checked.value);
    assert_eq!(found, Err(errors.iter().map(|error| (*error).to_owned()).collect()), "{document}");
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_whole_document() {
    let probe = json!({"grpc": {"port": 9000}});
    let mut document = group(json!({
        "metadata": {"labels": {"app": "payments"}, "annotations": {"team": "billing"}},
        "template": {"ports": {"http": 8080, "grpc": 9000}, "serviceAccount": "payments", "network": "dc1", "locality": "eu/a/1",
                     "weight": 2, "labels": {"version": "v2"}},
        "probe": probe,
    }));
    document["metadata"] =
        json!({"name": "payments", "namespace": "shop", "resourceVersion": "1", "labels": {"x": "y"}});
    let expected = WorkloadGroup {
        name: "payments".into(),
        namespace: Some("shop".into()),
        labels: texts(&[("app", "payments")]),
        annotations: texts(&[("team", "billing")]),
        template: WorkloadTemplate {
            ports: [("http".to_owned(), 8080), ("grpc".to_owned(), 9000)].into(),
            labels: texts(&[("version", "v2")]),
            service_account: Some("payments".into()),
            network: Some("dc1".into()),
            locality: Some("eu/a/1".into()),
            weight: 2,
        },
        probe: Some(WorkloadProbe::parse(&probe).expect("a probe").value),
    };
    let checked = WorkloadGroup::parse(&document).expect("a group");
    assert_eq!((checked.value, checked.warnings), (expected, Vec::new()));
}

#[test]
fn minimal_documents_of_each_version() {
    for version in ["networking.istio.io/v1", "networking.istio.io/v1beta1", "networking.istio.io/v1alpha3"] {
        for spec in [json!(null), json!({}), json!({"probe": null, "template": {"weight": 0}})] {
            let mut document = group(spec);
            document["apiVersion"] = version.into();
            let found = WorkloadGroup::parse(&document).expect("a group").value;
            assert_eq!((found.probe, found.namespace, found.template.weight), (None, None, 1), "{document}");
        }
    }
}

#[test]
fn wrong_documents() {
    check_rejected(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "A_b", "namespace": "a.b"}}),
        &[
            "kind: expected WorkloadGroup, got Deployment",
            "apiVersion: expected networking.istio.io/v1, v1beta1 or v1alpha3, got apps/v1",
            "metadata.name: must be a DNS-1123 name, got \"A_b\"",
            "metadata.namespace: must be a DNS-1123 label, got \"a.b\"",
        ],
    );
    check_rejected(
        json!({}),
        &[
            "kind: expected WorkloadGroup, got none",
            "apiVersion: expected networking.istio.io/v1, v1beta1 or v1alpha3, got none",
            "metadata.name: is required",
        ],
    );
    check_rejected(json!("text"), &["kind: expected WorkloadGroup, got none"]);
    check_rejected(
        group(json!({
            "metadata": {"labels": {"app": 5}, "annotations": []},
            "template": {"ports": {"grpc": "x", "http": 0}, "weight": -1},
            "probe": {"httpGet": null, "periodSeconds": 1.5},
        })),
        &[
            "spec.metadata.labels.app: expected a string, got 5",
            "spec.metadata.annotations: expected an object, got []",
            "spec.probe.periodSeconds: expected a whole number, got 1.5",
            "spec.probe.httpGet: must not be empty",
            "spec.template.ports.grpc: expected a whole number, got \"x\"",
            "spec.template.ports.http: must be between 1 and 65535, got 0",
            "spec.template.weight: must be 0 or more, got -1",
        ],
    );
}

#[test]
fn unknown_fields_are_warnings() {
    let document =
        group(json!({"probes": 1, "template": {"address": "x"}, "probe": {"grpc": {"port": 1}, "x": 1}}));
    let checked = WorkloadGroup::parse(&document).expect("a group");
    let lines = ["spec.probes", "spec.probe.x", "spec.template.address"]
        .map(|path| format!("{path}: unknown field, ignored"));
    assert_eq!(checked.warnings, lines);
}
