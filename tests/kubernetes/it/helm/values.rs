//! What each value changes, and that the API server accepts the result.

use std::collections::BTreeSet;
use std::path::Path;

use kubernetes_tests::helm::{Objects, chart, objects};
use serde_json::{Value, json};

use super::rows::{Row, WEBHOOK, everything, more_values, rows};
use super::{Fixture, NAMESPACE, assert_equal};

pub(super) fn lint(fixture: &mut Fixture) {
    for values in [json!({}), everything()] {
        fixture.helm.run_with(&["lint", "--strict"], &values).expect("no warning");
    }
}

/// The package has all files of the chart.
pub(super) fn package(fixture: &mut Fixture) {
    let (chart, folder) = (chart(), fixture.cluster.folder.join("package"));
    let folder_name = folder.to_str().expect("UTF-8");
    fixture
        .helm
        .run(&["package", chart.to_str().expect("UTF-8"), "--destination", folder_name])
        .expect("a package");
    let package = folder.join(concat!("app-health-", env!("CARGO_PKG_VERSION"), ".tgz"));
    let render = |chart: &Path| {
        let enabled = "discovery.crds.create=true,monitoring.rules.enabled=true";
        fixture.helm.run(&["template", "any-release", chart.to_str().expect("UTF-8"), "--set", enabled])
    };
    assert_eq!(render(&package), render(&chart));
    build_metadata(fixture, &chart);
}

/// The tag of an image cannot contain the `+` that separates the build metadata of a version.
fn build_metadata(fixture: &Fixture, chart: &Path) {
    let folder = fixture.cluster.folder.join("build-metadata");
    let [chart, folder_name] = [chart, folder.as_path()].map(|path| path.to_str().expect("UTF-8"));
    let arguments =
        ["package", chart, "--app-version", "1.2.3+a", "--version", "1.2.3", "--destination", folder_name];
    fixture.helm.run(&arguments).expect("a package");
    let package = folder.join("app-health-1.2.3.tgz");
    let values = "sidecar.image.repository=r/app-health,discovery.enabled=true";
    let yaml = fixture
        .helm
        .run(&["template", "any-release", package.to_str().expect("UTF-8"), "--set", values])
        .expect("rendered");
    let objects = objects(&yaml);
    let container = |name: &str| {
        let deployment = &objects[&("Deployment".to_owned(), name.to_owned())];
        deployment["spec"]["template"]["spec"]["containers"][0].clone()
    };
    for name in [WEBHOOK, "app-health-discovery"] {
        assert_eq!(container(name)["image"], "app-health-control-plane:1.2.3_a", "{name}");
    }
    let sidecar = json!({"name": "APP_HEALTH_IMAGE", "value": "r/app-health:1.2.3_a"});
    let webhook = container(WEBHOOK);
    assert!(webhook["env"].as_array().expect("variables").contains(&sidecar), "{webhook}");
}

pub(super) fn each_value(fixture: &mut Fixture) {
    let base = fixture.render(&everything());
    for Row { values, changes } in rows() {
        let mut expected = base.clone();
        for (kind, name, change) in changes {
            let key = (kind.to_owned(), name.to_owned());
            if change.is_null() {
                assert!(expected.remove(&key).is_some(), "{key:?} does not exist");
                continue;
            }
            let patch: json_patch::Patch = serde_json::from_value(change).expect("a patch");
            let object = expected.get_mut(&key).unwrap_or_else(|| panic!("{key:?} does not exist"));
            json_patch::patch(object, &patch).unwrap_or_else(|error| panic!("{values}: {error}"));
        }
        let mut rendered = fixture.render(&with_everything(&values));
        only_first_runbook(&values, &mut rendered, &base);
        assert_equal(&values.to_string(), &rendered, &expected);
    }
    all_objects(fixture, &base);
    issuer(fixture);
}

/// A row names one runbook; the others have the same prefix.
fn only_first_runbook(values: &Value, rendered: &mut Objects, base: &Objects) {
    let Some(prefix) = values.pointer("/monitoring/rules/runbookPrefix").and_then(Value::as_str) else {
        return;
    };
    let key = ("PrometheusRule".to_owned(), "app-health".to_owned());
    let text = |object: &Value| object.to_string();
    let expected = text(&base[&key]).replace("\"runbook_url\":\"", &format!("\"runbook_url\":\"{prefix}"));
    assert_eq!(text(&rendered[&key]), expected);
    let mut first = base[&key].clone();
    let pointer = "/spec/groups/0/rules/0/annotations/runbook_url";
    *first.pointer_mut(pointer).expect("an alert") =
        rendered[&key].pointer(pointer).expect("an alert").clone();
    rendered.insert(key, first);
}

/// Common labels and annotations are on every object, and on no Pod or selector.
fn all_objects(fixture: &Fixture, base: &Objects) {
    let values =
        json!({"commonLabels": {"team": "platform"}, "commonAnnotations": {"contact": "a@example.com"}});
    for (key, mut object) in fixture.render(&with_everything(&values)) {
        for (field, name, value) in
            [("labels", "team", "platform"), ("annotations", "contact", "a@example.com")]
        {
            let metadata = object["metadata"].as_object_mut().expect("metadata");
            let map = metadata[field].as_object_mut().expect("a map");
            assert_eq!(map.remove(name), Some(json!(value)), "{key:?}");
            if map.is_empty() {
                metadata.remove(field);
            }
        }
        assert_eq!(object, base[&key], "{key:?}");
    }
}

/// With another issuer there is one certificate, and its issuer provides the CA.
fn issuer(fixture: &Fixture) {
    let issuer = json!({"name": "company", "kind": "ClusterIssuer"});
    let certificate = json!({"source": "cert-manager", "issuerRef": issuer});
    let objects = fixture.render(&json!({"webhook": {"certificate": certificate}}));
    let key = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    assert_eq!(objects[&key("Certificate", WEBHOOK)]["spec"]["issuerRef"], issuer);
    assert!(!objects.contains_key(&key("Certificate", "app-health-webhook-root")));
    assert!(objects.keys().all(|(kind, _)| kind != "Issuer"));
    let annotations = &objects[&key("MutatingWebhookConfiguration", "app-health")]["metadata"]["annotations"];
    assert_eq!(annotations["cert-manager.io/inject-ca-from"], "app-health-system/app-health-webhook");
}

fn with_everything(values: &Value) -> Value {
    let mut all = everything();
    overlay(&mut all, values);
    all
}

/// Merges maps, and keeps null, which removes a default.
fn overlay(all: &mut Value, values: &Value) {
    match (all, values) {
        (Value::Object(all), Value::Object(values)) => {
            for (key, value) in values {
                overlay(all.entry(key).or_insert(Value::Null), value);
            }
        }
        (all, values) => *all = values.clone(),
    }
}

/// A new value in values.yaml needs a row in `rows`.
pub(super) fn every_value_has_a_row(_: &mut Fixture) {
    let all =
        [rows().into_iter().map(|row| row.values).collect(), more_values(), vec![everything()]].concat();
    let known = kit::monitoring::yaml(&chart().join("values.yaml"));
    let mut paths = BTreeSet::new();
    leaves("", &known, &mut paths);
    assert!(paths.len() > 80, "{paths:?}");
    paths.retain(|path| !all.iter().any(|values| values.pointer(path).is_some()));
    assert_eq!(paths, BTreeSet::new(), "no row sets them");
}

/// Collects the pointers of all values that are no group of others. Settings of Kubernetes, such as
/// resources, are one value.
fn leaves(path: &str, value: &Value, paths: &mut BTreeSet<String>) {
    let is_value =
        ["resources", "podSecurityContext", "securityContext"].iter().any(|name| path.ends_with(name));
    match value {
        Value::Object(fields) if !fields.is_empty() && !is_value => {
            fields.iter().for_each(|(name, value)| leaves(&format!("{path}/{name}"), value, paths));
        }
        _ => {
            paths.insert(path.to_owned());
        }
    }
}

/// The API server accepts what each row and the other values render, and has no warning.
pub(super) fn accepted(fixture: &mut Fixture) {
    let cluster = &fixture.cluster;
    cluster.create_namespace(NAMESPACE, &["pod-security.kubernetes.io/warn=restricted"]);
    for (group, kind, plural) in [
        ("cert-manager.io", "Issuer", "issuers"),
        ("cert-manager.io", "Certificate", "certificates"),
        ("monitoring.coreos.com", "PodMonitor", "podmonitors"),
        ("monitoring.coreos.com", "PrometheusRule", "prometheusrules"),
    ] {
        cluster.apply(&definition(group, kind, plural).to_string());
        cluster.kubectl_ok(&["wait", "--for=condition=Established", &format!("crd/{plural}.{group}")], "");
    }
    for values in rows().into_iter().map(|row| row.values).chain(more_values()) {
        let yaml = fixture.helm.template(NAMESPACE, &with_everything(&values)).expect("rendered");
        let (_, warnings) =
            cluster.kubectl_ok(&["apply", "--server-side", "--dry-run=server", "-f", "-"], &yaml);
        assert!(warnings.is_empty(), "{values}: {warnings}");
    }
}

/// A definition of another project's kind that accepts any field.
fn definition(group: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": [version],
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
        },
    })
}
