//! Tests of Pods that users create, and of their injection.

use std::fs;

use kit::envoy::workspace;
use serde_json::{Value, json};

use super::{Fixture, is_injected, pod};

pub(super) fn injected(fixture: &mut Fixture) {
    let mut warned = pod("shop", "injected");
    warned["spec"]["containers"][0]["readinessProbe"] =
        json!({"tcpSocket": {"port": 5432, "host": "db.test"}});
    let output = fixture.create(&warned);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let words = "Warning: app-health: app.readinessProbe: host \"db.test\": kubelet connects to this host, not to the Pod (host)";
    assert!(stderr.contains(words), "{stderr}");
    let stored = fixture.cluster.get(&["pod/injected", "-n", "shop"]);
    assert!(is_injected(&stored));
    assert_eq!(stored["spec"]["containers"][0]["livenessProbe"]["timeoutSeconds"], 2);
    assert_eq!(stored["spec"]["containers"][0]["readinessProbe"]["tcpSocket"]["host"], "db.test");
    let table = stored["spec"]["initContainers"][0]["env"]
        .as_array()
        .expect("env")
        .iter()
        .find(|env| env["name"] == "ISTIO_KUBE_APP_PROBERS");
    let expected = r#"{"/app-health/app/livez":{"httpGet":{"path":"/live","port":8080,"scheme":"HTTP"},"timeoutSeconds":1}}"#;
    assert_eq!(table.expect("the table")["value"], expected);
    let template = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("", "")["spec"]}},
    });
    assert!(fixture.create(&template).status.success(), "the webhook must not be called for other kinds");
}

pub(super) fn dry_run(fixture: &mut Fixture) {
    let pod = pod("shop", "dry").to_string();
    let (shown, _) =
        fixture.cluster.kubectl_ok(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod);
    assert!(is_injected(&serde_json::from_str(&shown).expect("JSON")));
    assert!(!fixture.cluster.kubectl(&["get", "pod", "dry", "-n", "shop"], "").status.success());
}

pub(super) fn selected(fixture: &mut Fixture) {
    let inject = "sidecar.istio.io/inject";
    for (namespace, label, expected) in [
        ("default", None, false),
        ("default", Some("true"), true),
        ("default", Some("false"), false),
        ("shop", Some("false"), false),
        ("shop", Some("true"), true),
        ("kube-system", Some("true"), false),
        ("kube-public", Some("true"), false),
    ] {
        let mut pod = pod(namespace, "selected");
        if let Some(label) = label {
            pod["metadata"]["labels"][inject] = label.into();
        }
        let (shown, _) = fixture
            .cluster
            .kubectl_ok(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod.to_string());
        assert_eq!(
            is_injected(&serde_json::from_str(&shown).expect("JSON")),
            expected,
            "{namespace} {label:?}"
        );
    }
}

pub(super) fn restricted(fixture: &mut Fixture) {
    let mut pod = pod("restricted", "restricted");
    pod["spec"]["containers"][0]["securityContext"] = json!({
        "runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let (shown, _) = fixture
        .cluster
        .kubectl_ok(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod.to_string());
    assert!(is_injected(&serde_json::from_str(&shown).expect("JSON")));
}

/// If the API server accepts the input of a golden file, it also accepts the injected result.
pub(super) fn goldens(fixture: &mut Fixture) {
    let folder = workspace().join("injector/testdata/inject");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("goldens").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "json"));
    files.sort();
    let mut taken = 0;
    for file in files {
        let golden = format!("{}.injected", file.display());
        let create = |file: &str| fixture.cluster.kubectl(&["create", "--dry-run=server", "-f", file], "");
        if !create(file.to_str().expect("UTF-8")).status.success() {
            continue;
        }
        // The notes at the top are YAML comments, which JSON does not allow.
        let text = fs::read_to_string(&golden).expect("a golden");
        let text: String =
            text.lines().filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect();
        let after = fixture.cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], &text);
        assert!(after.status.success(), "{golden}: {}", String::from_utf8_lossy(&after.stderr));
        taken += 1;
    }
    assert!(taken >= 60, "the API server accepts only {taken} of the golden inputs");
}

/// kubectl parses every string that the project's YAML writer writes to the same string.
pub(super) fn strings(fixture: &mut Fixture) {
    let strings: Vec<String> =
        serde_json::from_str(include_str!("../../../../injector/testdata/strings.json")).expect("JSON");
    let data: serde_json::Map<String, Value> =
        strings.iter().enumerate().map(|(index, text)| (format!("s{index}"), text.as_str().into())).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "strings"}, "data": data});
    let written = injector::yaml::text(&map);
    let (read, _) =
        fixture.cluster.kubectl_ok(&["annotate", "--local", "-f", "-", "zz=1", "-o", "json"], &written);
    let read: Value = serde_json::from_str(&read).expect("JSON");
    assert_eq!(read["data"], map["data"], "{written}");
}
