//! The chart renders the objects of the shipped manifests.

use std::fs;

use kubernetes_tests::helm::{Objects, objects};
use kubernetes_tests::manifests;
use serde_json::{Value, json};

use super::{Fixture, assert_equal};

/// A folder or file that contains expected objects.
enum Source {
    /// Kustomize builds this folder of envoy-config/kubernetes.
    Kustomization(&'static str),
    /// The test reads this file of the folder, which no kustomization lists.
    File(&'static str),
}

use Source::{File, Kustomization};

/// The addresses of the nodes in the shipped network policies.
const NODES: &str = "192.0.2.0/24";

/// Values, and the manifests that contain the same objects.
fn rows() -> Vec<(Value, Vec<Source>)> {
    let policies = json!({"enabled": true, "nodeCIDRs": [NODES]});
    let with_namespace = |values: Value| {
        let mut all = json!({"namespace": {"create": true}, "networkPolicy": {"enabled": false}});
        json_patch::merge(&mut all, &values);
        all
    };
    let template = fs::read_to_string(manifests("strict-mtls/sidecar.yaml")).expect("a template");
    vec![
        (with_namespace(json!({})), vec![Kustomization("base")]),
        (
            with_namespace(json!({"webhook": {"certificate": {"source": "cert-manager"}}})),
            vec![Kustomization("overlays/cert-manager")],
        ),
        (
            with_namespace(json!({"webhook": {"clientCA": {"configMap": "app-health-client-ca"}}})),
            vec![Kustomization("overlays/client-ca")],
        ),
        (
            with_namespace(json!({"webhook": {"settings": {"mode": "rewrite-only"}}})),
            vec![Kustomization("overlays/rewrite-only")],
        ),
        (
            with_namespace(json!({"sidecar": {"templateConfigMap": "app-health-template"}})),
            vec![Kustomization("overlays/template")],
        ),
        (with_namespace(json!({"sidecar": {"template": template}})), vec![Kustomization("strict-mtls")]),
        (
            json!({
                "webhook": {"enabled": false}, "priorityClass": {"create": false},
                "discovery": {"enabled": true}, "networkPolicy": {"enabled": false},
            }),
            vec![Kustomization("discovery")],
        ),
        (
            with_namespace(json!({"discovery": {"enabled": true}, "networkPolicy": policies})),
            vec![Kustomization("base"), Kustomization("discovery"), Kustomization("network-policies")],
        ),
        (
            with_namespace(json!({
                "discovery": {"enabled": true, "crds": {"create": true}},
                "monitoring": {"podMonitors": {"enabled": true}},
            })),
            vec![
                Kustomization("base"),
                Kustomization("discovery"),
                File("discovery/crds.yaml"),
                File("../monitoring/pod-monitors.yaml"),
            ],
        ),
    ]
}

pub(super) fn equal(fixture: &mut Fixture) {
    for (values, sources) in rows() {
        let mut rendered = fixture.render(&values);
        remove_additions(&mut rendered);
        let mut expected = Objects::new();
        for source in sources {
            expected.extend(objects(&match source {
                Kustomization(folder) => fixture.cluster.kustomize(folder),
                File(name) => fs::read_to_string(manifests(name)).expect("a manifest"),
            }));
        }
        assert_equal(&values.to_string(), &rendered, &expected);
    }
    let rules = fixture.render(&json!({"monitoring": {"rules": {"enabled": true}}}));
    let rule = &rules[&("PrometheusRule".to_owned(), "app-health".to_owned())];
    assert_eq!(rule["spec"], kit::monitoring::yaml(&kit::monitoring::folder().join("rules.yaml")));
}

/// Removes two annotations that only the chart has: definitions and the namespace stay when the
/// release is uninstalled, and another template replaces the Pods, which kustomize does by another
/// name of the ConfigMap.
fn remove_additions(objects: &mut Objects) {
    for ((kind, name), object) in objects {
        let (metadata, annotation) = match kind.as_str() {
            "CustomResourceDefinition" | "Namespace" => (&mut object["metadata"], "helm.sh/resource-policy"),
            "Deployment" => (&mut object["spec"]["template"]["metadata"], "app-health.io/template-checksum"),
            _ => continue,
        };
        let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
            assert_eq!(kind, "Deployment", "{name} is not kept");
            continue;
        };
        annotations.remove(annotation);
        if annotations.is_empty() {
            metadata.as_object_mut().expect("metadata").remove("annotations");
        }
    }
}
