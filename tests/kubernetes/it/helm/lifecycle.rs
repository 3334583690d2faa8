//! A release of the chart: installed, upgraded, rolled back and removed.

use std::net::Ipv4Addr;

use kit::agent::binary_of;
use kit::reserved_port::ReservedPort;
use kubernetes_tests::helm::objects;
use kubernetes_tests::{Process, command};
use serde_json::{Value, json};

use super::{Fixture, NAMESPACE};
use crate::{http_get, wait_until};

const CONFIGURATION: &str = "mutatingwebhookconfiguration/app-health";
const RELEASE: &str = "app-health";

/// The values of the first revision.
fn first_values() -> Value {
    json!({
        "discovery": {"enabled": true, "crds": {"create": true}},
        "networkPolicy": {"enabled": true, "nodeCIDRs": ["192.0.2.0/24"]},
        "monitoring": {"podMonitors": {"enabled": true}, "rules": {"enabled": true}},
    })
}

/// Values that change, add and remove objects.
fn other_values() -> Value {
    json!({
        "image": {"repository": "registry.example.com/control-plane", "tag": "0.2.0"},
        "commonLabels": {"team": "platform"},
        "sidecar": {"image": {"repository": "registry.example.com/app-health"}, "template": "spec: {containers: [{name: app-health-proxy}]}"},
        "webhook": {
            "replicas": 3, "failurePolicy": "Ignore", "timeoutSeconds": 10, "resources": {"limits": {"memory": "512Mi"}},
            "objectSelector": [{"key": "legacy", "operator": "DoesNotExist"}],
            "tolerations": [{"key": "control-plane", "operator": "Exists"}], "settings": {"sidecarMode": "classic"},
        },
        "monitoring": {"podMonitors": {"enabled": true}},
    })
}

impl Fixture {
    /// Runs a command of Helm for the release.
    fn release(&self, command: &[&str], values: &Value) -> Result<String, String> {
        self.helm.run_with(&[command, &["--namespace", NAMESPACE, RELEASE]].concat(), values)
    }

    /// Asserts that the cluster has the objects that these values render, with all their fields.
    fn assert_installed(&self, values: &Value) {
        let template = ["template", "--namespace", NAMESPACE, RELEASE];
        let yaml = self.helm.run_with(&template, values).expect("rendered");
        let arguments = ["diff", "--server-side", "--force-conflicts", "--field-manager=test", "-f", "-"];
        let output = self.cluster.kubectl(&arguments, &yaml);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    }

    /// Returns the objects that these values render, as the API server stores them, without what
    /// every write changes.
    fn stored(&self, values: &Value) -> Vec<Value> {
        let rendered = objects(&self.helm.template(NAMESPACE, values).expect("rendered"));
        let stored = rendered.keys().map(|(kind, name)| {
            let mut object = self.cluster.get(&[kind.as_str(), name.as_str(), "-n", NAMESPACE]);
            let metadata = object["metadata"].as_object_mut().expect("metadata");
            for field in ["generation", "managedFields", "resourceVersion"] {
                metadata.remove(field);
            }
            object.as_object_mut().expect("an object").remove("status");
            object
        });
        stored.collect()
    }

    /// Returns the caBundle of both entries.
    fn bundles(&self) -> [Value; 2] {
        let configuration = self.cluster.get(&[CONFIGURATION]);
        [0, 1].map(|index| configuration["webhooks"][index]["clientConfig"]["caBundle"].clone())
    }

    /// Starts the webhook with the rights of its service account, and waits until it has written the
    /// caBundle.
    fn start_webhook(&mut self) {
        let [address, monitoring] = [(); 2].map(|()| ReservedPort::new(Ipv4Addr::LOCALHOST.into()));
        let mut command = command(&binary_of("app-health"));
        command.args(["webhook", "--address", &address.address.to_string()]);
        command.args(["--monitoring-address", &monitoring.address.to_string()]);
        command.env("KUBECONFIG", self.cluster.kubeconfig("webhook")).env("POD_NAMESPACE", NAMESPACE);
        self.webhook = Some(Process::start(&mut command, &self.cluster.folder.join("webhook.log")));
        wait_until("the webhook is ready", || http_get(monitoring.address, "/healthz/ready").status == 200);
    }
}

pub(super) fn install(fixture: &mut Fixture) {
    let notes = fixture.release(&["install", "--create-namespace"], &first_values()).expect("installed");
    assert!(
        notes.contains("kubectl rollout status -n app-health-system deployment/app-health-webhook"),
        "{notes}"
    );
    fixture.assert_installed(&first_values());
}

/// Helm owns only the fields that it renders, so the caBundle, which the webhook writes, stays. That
/// holds for both ways in which Helm updates objects.
pub(super) fn upgrade(fixture: &mut Fixture) {
    fixture.start_webhook();
    let written = fixture.bundles();
    assert!(written.iter().all(Value::is_string), "{written:?}");
    for method in ["auto", "false", "true"] {
        for values in [other_values(), first_values()] {
            let upgraded = fixture.release(&["upgrade", "--server-side", method], &values);
            upgraded.unwrap_or_else(|error| panic!("--server-side={method}: {error}"));
            fixture.assert_installed(&values);
            assert_eq!(fixture.bundles(), written, "--server-side={method}");
        }
    }
    fixture.release(&["upgrade"], &other_values()).expect("upgraded");
    let removed = fixture.cluster.kubectl(&["get", "deployment/app-health-discovery", "-n", NAMESPACE], "");
    assert!(!removed.status.success(), "discovery is disabled, but it is still installed");
}

pub(super) fn rollback(fixture: &mut Fixture) {
    fixture.release(&["upgrade"], &first_values()).expect("upgraded");
    let stored = without_identities(fixture.stored(&first_values()));
    fixture.release(&["upgrade"], &other_values()).expect("upgraded");
    fixture.helm.run(&["rollback", "--namespace", NAMESPACE, RELEASE, "1"]).expect("rolled back");
    fixture.assert_installed(&first_values());
    assert_eq!(without_identities(fixture.stored(&first_values())), stored);
}

/// Removes what another object of the same name does not share: an upgrade removes the objects of
/// discovery, and a rollback creates them again.
fn without_identities(mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        for field in ["uid", "creationTimestamp"] {
            object["metadata"].as_object_mut().expect("metadata").remove(field);
        }
        if object["kind"] == "Service" {
            for field in ["clusterIP", "clusterIPs"] {
                object["spec"].as_object_mut().expect("a spec").remove(field);
            }
        }
    }
    objects
}

pub(super) fn conflict(fixture: &mut Fixture) {
    let patch =
        json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]).to_string();
    fixture.cluster.kubectl_ok(&["patch", CONFIGURATION, "--type=json", "-p", &patch], "");
    let error = fixture.release(&["upgrade"], &first_values()).expect_err("a conflict");
    for part in ["conflict", "kubectl-patch", "failurePolicy"] {
        assert!(error.contains(part), "{part} is missing: {error}");
    }
    let written = fixture.bundles();
    fixture.release(&["upgrade", "--force-conflicts"], &first_values()).expect("upgraded");
    fixture.assert_installed(&first_values());
    assert_eq!(fixture.bundles(), written);
}

/// Both releases would inject the same Pods, so some names do not depend on the release.
pub(super) fn second_release(fixture: &mut Fixture) {
    let stored = fixture.stored(&first_values());
    let command = ["install", "--create-namespace", "--namespace", "second", "other"];
    let error = fixture.helm.run_with(&command, &json!({})).expect_err("refused");
    assert!(error.contains("cannot be imported into the current release"), "{error}");
    assert!(error.contains(r#"current value is "app-health""#), "{error}");
    assert_eq!(fixture.helm.run(&["list", "--short", "--namespace", "second"]).expect("a list"), "");
    let kinds =
        "deployments,services,serviceaccounts,secrets,configmaps,roles,rolebindings,poddisruptionbudgets";
    let created = fixture.cluster.get(&[kinds, "-n", "second"]);
    assert_eq!(created["items"], json!([]));
    assert_eq!(fixture.stored(&first_values()), stored);
}

pub(super) fn uninstall(fixture: &mut Fixture) {
    let rendered = objects(&fixture.helm.template(NAMESPACE, &first_values()).expect("rendered"));
    fixture.helm.run(&["uninstall", "--namespace", NAMESPACE, RELEASE]).expect("uninstalled");
    for (kind, name) in rendered.keys() {
        let found = fixture.cluster.kubectl(&["get", kind, name, "-n", NAMESPACE], "");
        let stays = kind == "CustomResourceDefinition";
        assert_eq!(found.status.success(), stays, "{kind} {name}");
    }
    let names = |kind: &str| -> Vec<String> {
        let list = fixture.cluster.get(&[kind, "-n", NAMESPACE]);
        let items = list["items"].as_array().expect("a list").iter();
        items.map(|object| object["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names("secrets"), ["app-health-webhook-ca"]);
    assert_eq!(names("configmaps"), Vec::<String>::new());
    fixture.webhook = None;
}

/// The objects of both have the same names, so Helm can take over those that `kubectl apply -k`
/// created. The webhook keeps its CA. Helm adopts the namespace too, but never deletes it.
pub(super) fn adopt(fixture: &mut Fixture) {
    fixture.cluster.apply(&fixture.cluster.kustomize("base"));
    fixture.start_webhook();
    let written = fixture.bundles();
    let values = json!({"webhook": {"replicas": 4}, "namespace": {"create": true}});
    let error = fixture.release(&["install"], &values).expect_err("refused");
    assert!(error.contains("cannot be imported into the current release"), "{error}");
    fixture.release(&["install", "--take-ownership", "--force-conflicts"], &values).expect("adopted");
    fixture.assert_installed(&values);
    assert_eq!(fixture.bundles(), written);
    // Neither an upgrade without the namespace nor uninstalling deletes it.
    let without_namespace = json!({"webhook": {"replicas": 4}});
    for values in [&without_namespace, &values] {
        fixture.release(&["upgrade"], values).expect("upgraded");
        let namespace = fixture.cluster.get(&["namespace", NAMESPACE]);
        assert_eq!(namespace["metadata"].get("deletionTimestamp"), None, "{values}");
    }
    fixture.helm.run(&["uninstall", "--namespace", NAMESPACE, RELEASE]).expect("uninstalled");
    for (kind, name) in objects(&fixture.helm.template(NAMESPACE, &values).expect("rendered")).keys() {
        let found = fixture.cluster.kubectl(&["get", kind, name, "-n", NAMESPACE], "");
        assert_eq!(found.status.success(), kind == "Namespace", "{kind} {name}");
    }
    let namespace = fixture.cluster.get(&["namespace", NAMESPACE]);
    assert_eq!(namespace["metadata"].get("deletionTimestamp"), None, "{namespace}");
}
