//! Tests of the shipped manifests, and of the webhook with the permissions that they grant.

use std::net::Ipv4Addr;

use kit::reserved_port::ReservedPort;
use serde_json::{Value, json};

use super::dial::dial;
use super::{CONFIGURATION, Fixture, NAMESPACE};

const FOLDERS: [&str; 7] = [
    "base",
    "network-policies",
    "overlays/cert-manager",
    "overlays/client-ca",
    "overlays/rewrite-only",
    "strict-mtls",
    "strict-mtls/namespace",
];

/// Asserts that the API server accepts every object of the shipped manifests, and applies those of
/// `base`, with another Service that leads to the webhook's process.
pub(super) fn manifests(fixture: &mut Fixture) {
    let cluster = &fixture.cluster;
    cluster.create_namespace(NAMESPACE, &[]);
    for folder in FOLDERS {
        let all = cluster.kustomize(folder);
        // Only a cluster with cert-manager knows the kinds of cert-manager.
        let ours: Vec<&str> =
            all.split("\n---\n").filter(|object| !object.contains("cert-manager.io/v1\n")).collect();
        let (_, warnings) =
            cluster.kubectl_ok(&["apply", "--dry-run=server", "-f", "-"], &ours.join("\n---\n"));
        assert!(!warnings.contains("PodSecurity"), "{folder}: {warnings}");
    }
    let base = cluster.kustomize("base");
    cluster.apply(&base);
    cluster.kubectl_ok(&["delete", "service", "app-health-webhook", "-n", NAMESPACE], "");
    let port = fixture.address.port();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "app-health-webhook", "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    cluster.apply(&service.to_string());
    let patch: Vec<Value> = (0..2)
        .map(|index| json!({"op": "replace", "path": format!("/webhooks/{index}/clientConfig/service/port"), "value": port}))
        .collect();
    cluster.kubectl_ok(&["patch", CONFIGURATION, "--type=json", "-p", &Value::from(patch).to_string()], "");
    let enabled = "app-health.io/injection=enabled";
    cluster.create_namespace("shop", &[enabled]);
    cluster.create_namespace("restricted", &[enabled, "pod-security.kubernetes.io/enforce=restricted"]);
}

/// Two replicas share one CA, and have only the permissions of the manifests.
pub(super) fn ready(fixture: &mut Fixture) {
    fixture.webhook = Some(fixture.start("webhook.log", &fixture.address, &fixture.monitoring));
    fixture.wait_until("ready", || fixture.is_ready(&fixture.monitoring));
    let [other, monitoring] = [(); 2].map(|()| ReservedPort::new(Ipv4Addr::LOCALHOST.into()));
    let _other = fixture.start("other.log", &other, &monitoring);
    fixture.wait_until("the second replica is ready", || fixture.is_ready(&monitoring));
    for port in [&fixture.address, &other] {
        dial(port.address, &fixture.bundle()).expect("the certificate is signed by the CA in the caBundle");
    }
    for arguments in [
        &["get", "pods", "-A"][..],
        &["get", "nodes"],
        &["get", "secrets", "-n", NAMESPACE],
        &["delete", "secret", "app-health-webhook-ca", "-n", NAMESPACE],
        &["get", "mutatingwebhookconfigurations"],
        &["get", "mutatingwebhookconfiguration", "other"],
        &["patch", "mutatingwebhookconfiguration", "other", "-p", "{}"],
    ] {
        let refused = fixture.cluster.kubectl_as("webhook", arguments, "");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("forbidden"), "{arguments:?}");
    }
}
