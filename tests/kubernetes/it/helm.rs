//! Tests of the Helm chart with the real Helm and an API server. Pods do not run, so the steps wait
//! for objects, not for readiness.

mod istio;
mod lifecycle;
mod manifests;
mod rows;
mod values;
mod wrong_values;

use kubernetes_tests::helm::{Helm, Objects, objects};
use kubernetes_tests::{Cluster, Process};
use serde_json::{Value, json};

/// The name of a step, and the function that runs it.
type Step = (&'static str, fn(&mut Fixture));

pub(crate) const STEPS: [Step; 14] = [
    ("lint", values::lint),
    ("the package renders the same", values::package),
    ("the chart renders the shipped manifests", manifests::equal),
    ("each value changes what it names", values::each_value),
    ("every value has a row", values::every_value_has_a_row),
    ("wrong values are rejected by their name", wrong_values::rejected),
    ("the API server accepts all rendered objects", values::accepted),
    ("install", lifecycle::install),
    ("an upgrade keeps the caBundle of the webhook", lifecycle::upgrade),
    ("a rollback restores every object", lifecycle::rollback),
    ("a manual change is a conflict until it is forced", lifecycle::conflict),
    ("a second release is refused and changes nothing", lifecycle::second_release),
    ("uninstall leaves what is documented", lifecycle::uninstall),
    ("Helm adopts an installation of kustomize", lifecycle::adopt),
];

/// The steps with the chart for an Istio mesh.
pub(crate) const STEPS_WITH_ISTIO: [Step; 2] = [
    ("the chart renders the shipped manifests", istio::manifests_equal),
    ("its policy changes the sidecars of Istio's injector", istio::policy),
];

const NAMESPACE: &str = "app-health-system";

/// The cluster, and the webhook. The webhook is dropped first, because its log is in the cluster's
/// directory.
pub(crate) struct Fixture {
    webhook: Option<Process>,
    helm: Helm,
    cluster: Cluster,
}

impl Fixture {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let helm = Helm::new(&cluster.folder.join("helm"), cluster.kubeconfig("admin"));
        Self { webhook: None, helm, cluster }
    }

    /// Renders the chart without the labels that only Helm's objects have.
    fn render(&self, values: &Value) -> Objects {
        let yaml = self.helm.template(NAMESPACE, values).unwrap_or_else(|error| panic!("{values}: {error}"));
        let mut objects = objects(&yaml);
        without_labels_of_helm(&mut objects);
        objects
    }
}

/// Removes the labels that only Helm's objects have.
fn without_labels_of_helm(objects: &mut Objects) {
    for (key, object) in objects {
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        let labels = metadata["labels"].as_object_mut().expect("labels");
        for (label, value) in [
            ("app.kubernetes.io/managed-by", "Helm"),
            ("app.kubernetes.io/instance", "any-release"),
            ("app.kubernetes.io/version", env!("CARGO_PKG_VERSION")),
        ] {
            assert_eq!(labels.remove(label), Some(json!(value)), "{key:?}: {label}");
        }
        assert!(labels.remove("helm.sh/chart").is_some(), "{key:?}");
        if labels.get("app.kubernetes.io/name") == Some(&json!("app-health")) {
            labels.remove("app.kubernetes.io/name");
        }
        if labels.is_empty() {
            metadata.remove("labels");
        }
    }
}

/// Asserts that both have the same objects, and names those that differ.
fn assert_equal(what: &str, found: &Objects, expected: &Objects) {
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{what}: other objects");
    for (key, object) in expected {
        let (found, expected) = (&found[key], object);
        assert!(found == expected, "{what}: {key:?}\nrendered: {found:#}\nexpected: {expected:#}");
    }
}
