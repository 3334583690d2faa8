//! Tests `app-health lint --cluster`, and that the API server agrees with the rules: it rejects what
//! they say that it rejects, and accepts the good examples.

use std::fs;
use std::process::Output;

use kit::agent::binary_of;
use kit::envoy::workspace;
use kubernetes_tests::{Cluster, command};
use serde_json::{Value, json};

/// Rules whose bad example the API server rejects.
const REJECTED: [&str; 8] = ["AH002", "AH017", "AH018", "AH019", "AH020", "AH100", "AH109", "AH112"];
/// Rules with the severity `error` whose bad example it accepts.
const ACCEPTED: [&str; 3] = ["AH001", "AH107", "AH114"];
/// The objects that `lint --cluster` reads.
const RESOURCES: &str = "pods,replicationcontrollers,deployments.apps,statefulsets.apps,daemonsets.apps,replicasets.apps,jobs.batch,cronjobs.batch";

pub(crate) fn lint(cluster: &Cluster) {
    the_api_server_agrees(cluster);
    create_workloads(cluster);
    permissions(cluster);
    namespaces(cluster);
}

fn the_api_server_agrees(cluster: &Cluster) {
    let folder = workspace().join("lint/testdata/rules");
    let create = |name: &str| {
        let file = folder.join(name);
        let file = file.to_str().expect("UTF-8");
        cluster.kubectl(&["create", "--dry-run=server", "-f", file], "")
    };
    let bad = |code: &str| create(&format!("{code}.bad.yaml"));
    for code in REJECTED {
        let output = bad(code);
        assert!(!output.status.success(), "{code} is accepted: {}", text(&output.stdout));
    }
    for code in ACCEPTED {
        let output = bad(code);
        assert!(output.status.success(), "{code} is rejected: {}", text(&output.stderr));
    }
    let mut accepted = 0;
    for entry in fs::read_dir(&folder).expect("examples") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if name.ends_with(".good.yaml") {
            let output = create(&name);
            assert!(output.status.success(), "{name} is rejected: {}", text(&output.stderr));
            accepted += 1;
        }
    }
    assert!(accepted >= 40, "{accepted} good examples");
}

/// Creates a Deployment with an error, its ReplicaSet as a controller would, and a Pod with a warning
/// in `shop`; and a Pod with an error in `other`.
fn create_workloads(cluster: &Cluster) {
    cluster.create_namespace("shop", &[]);
    cluster.create_namespace("other", &[]);
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{
            "name": "app", "image": "shop:1", "ports": [{"name": "http", "containerPort": 8080}],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "web"}},
        }]},
    });
    let workload = |kind: &str, owners: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": "web", "namespace": "shop", "ownerReferences": owners},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
        })
    };
    let create = |object: &Value| cluster.kubectl_ok(&["create", "-f", "-"], &object.to_string());
    create(&workload("Deployment", json!([])));
    let uid = cluster.get(&["deployment/web", "-n", "shop"])["metadata"]["uid"].clone();
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": true});
    create(&workload("ReplicaSet", json!([owner])));
    let pod = |namespace: &str, probe: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "namespace": namespace},
            "spec": {"containers": [{
                "name": "app", "image": "shop:1", "ports": [{"name": "http", "containerPort": 8080}], "readinessProbe": probe,
            }]},
        })
    };
    create(&pod("shop", json!({"tcpSocket": {"port": 8080}})));
    create(&pod("other", json!({"httpGet": {"path": "/", "port": "web"}})));
}

/// Without permissions, the error names them; with exactly these, the command succeeds.
fn permissions(cluster: &Cluster) {
    let arguments = ["-A", "--format", "json"];
    let refused = run(cluster, "webhook", &arguments);
    let error = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(66), "{error}");
    for resource in RESOURCES.split(',') {
        assert!(error.contains(resource), "{resource}: {error}");
    }
    let resources = format!("--resource={RESOURCES}");
    cluster.kubectl_ok(&["create", "clusterrole", "lint", "--verb=list", &resources], "");
    let user = "--user=system:serviceaccount:app-health-system:app-health-webhook";
    cluster.kubectl_ok(&["create", "clusterrolebinding", "lint", "--clusterrole=lint", user], "");
    // The authorizer learns of the binding through a watch.
    crate::wait_until("the permissions are granted", || {
        run(cluster, "webhook", &arguments).status.code() == Some(1)
    });
}

fn namespaces(cluster: &Cluster) {
    let findings = |arguments: &[&str]| {
        let output = run(cluster, "admin", &[arguments, &["--format", "json"]].concat());
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let findings = report["findings"].as_array().expect("a list").iter();
        let text = |finding: &Value, field: &str| finding[field].as_str().expect("a text").to_owned();
        let mut found: Vec<[String; 4]> = findings
            .map(|finding| ["namespace", "kind", "name", "code"].map(|field| text(finding, field)))
            .collect();
        found.sort();
        (output.status.code(), found)
    };
    let row = |row: [&str; 4]| row.map(str::to_owned);
    let shop = [row(["shop", "Deployment", "web", "AH001"]), row(["shop", "Pod", "alone", "AH012"])];
    let other = row(["other", "Pod", "alone", "AH001"]);
    assert_eq!(findings(&["-n", "shop"]), (Some(1), shop.to_vec()));
    assert_eq!(findings(&["-A"]), (Some(1), [&[other][..], &shop].concat()));
    // The kubeconfig names no namespace, so it is `default`.
    assert_eq!(findings(&[]), (Some(0), Vec::new()));
    let output = run(cluster, "admin", &["-n", "shop"]);
    let lines = text(&output.stdout);
    assert!(
        lines.starts_with("namespace shop: error: Deployment/web: app.readinessProbe: port \"web\""),
        "{lines}"
    );
    assert!(lines.ends_with("1 error, 1 warning, 0 info, 0 suppressed; 2 Pods\n"), "{lines}");
}

/// Runs `app-health lint --cluster` as a user of the cluster.
fn run(cluster: &Cluster, user: &str, arguments: &[&str]) -> Output {
    command(&binary_of("app-health"))
        .args(["lint", "--cluster"])
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig(user))
        .output()
        .expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
