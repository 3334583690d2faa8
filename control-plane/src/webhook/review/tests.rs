use serde_json::json;

use super::*;
use injector::settings::{InjectionMode, SidecarMode};
use injector::template::Template;

fn settings() -> Settings {
    Settings {
        sidecar_name: "app-health-proxy".to_owned(),
        mode: InjectionMode::Auto,
        template: Template::built_in("app-health-proxy", None).expect("the built-in template"),
        sidecar_mode: SidecarMode::Native,
        hold: true,
        rewrite_probes: true,
        status_port: 15020,
        ignored_namespaces: vec!["kube-system".to_owned()],
    }
}

/// Returns a review of a Pod's creation with `change` merged over it.
fn body(change: &Value) -> Value {
    let pod = json!({
        "metadata": {"generateName": "shop-", "creationTimestamp": null},
        "spec": {"containers": [{"name": "app", "image": "shop:1", "livenessProbe": {"tcpSocket": {"port": 8080}}}]},
    });
    let mut body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "default", "object": pod,
        },
    });
    merge(&mut body, change);
    body
}

fn merge(value: &mut Value, change: &Value) {
    match change {
        Value::Object(fields) if value.is_object() => {
            fields.iter().for_each(|(key, change)| merge(&mut value[key], change))
        }
        other => *value = other.clone(),
    }
}

fn answer(change: Value) -> Value {
    let reviewed = review(body(&change).to_string().as_bytes(), &settings()).expect("a review");
    serde_json::from_slice(&reviewed.body).expect("JSON")
}

#[test]
fn a_pod_gets_a_patch_in_the_requested_version() {
    for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
        let answer = answer(json!({"apiVersion": version}));
        assert_eq!((&answer["apiVersion"], &answer["kind"]), (&json!(version), &json!("AdmissionReview")));
        let response = &answer["response"];
        assert_eq!(response["uid"], "u1");
        assert_eq!(response["allowed"], true);
        assert_eq!(response["patchType"], "JSONPatch");
        assert_eq!(response["auditAnnotations"], json!({"result": "injected"}));
        let patch = STANDARD.decode(response["patch"].as_str().expect("a string")).expect("standard base64");
        let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a patch");
        let mut pod = body(&json!({}))["request"]["object"].clone();
        json_patch::patch(&mut pod, &patch).expect("fits");
        assert_eq!(pod["spec"]["containers"][0]["livenessProbe"]["httpGet"]["path"], "/app-health/app/livez");
        assert_eq!(pod["metadata"]["creationTimestamp"], Value::Null);
    }
}

#[test]
fn other_requests_are_allowed_unchanged() {
    for (change, result) in [
        (json!({"request": {"operation": "UPDATE"}}), "skipped"),
        (json!({"request": {"resource": {"resource": "services"}}}), "skipped"),
        (json!({"request": {"subResource": "exec"}}), "skipped"),
        (json!({"request": {"resource": {"group": "metrics.k8s.io"}}}), "skipped"),
        (json!({"request": {"namespace": "kube-system"}}), "skipped"),
        (json!({"request": {"object": null}}), "unchanged"),
        (json!({"request": {"object": {"spec": {"containers": {}}}}}), "unchanged"),
    ] {
        let response = answer(change.clone())["response"].clone();
        assert_eq!(response["allowed"], true, "{change}");
        assert_eq!(response["auditAnnotations"]["result"], result, "{change}");
        assert!(response.get("patch").is_none() && response.get("patchType").is_none(), "{change}");
        assert_eq!(response.get("warnings").is_some(), result == "unchanged", "{change}");
    }
}

#[test]
fn a_dry_run_gets_the_same_response() {
    let bytes = |change| review(body(&change).to_string().as_bytes(), &settings()).expect("a review").body;
    assert_eq!(bytes(json!({"request": {"dryRun": true}})), bytes(json!({"request": {"dryRun": false}})));
}

#[test]
fn invalid_reviews_are_rejected() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let deep = body(&json!({"request": {"object": "deep"}})).to_string().replace("\"deep\"", &deep);
    let whole = body(&json!({})).to_string();
    let cases: [(Vec<u8>, &str); 12] = [
        (b"{".to_vec(), "body: ends too early at line 1 column 1"),
        (b"nonsense".to_vec(), "body: invalid JSON at line 1 column 2"),
        (b"{\"a\": \xff}".to_vec(), "body: invalid UTF-8 at byte 6"),
        (b"[1]".to_vec(), "body: a field has the wrong type at line 1 column 3"),
        (deep.into_bytes(), "request.object: invalid JSON at line 1 column 128"),
        (format!("{whole} x").into_bytes(), "body: invalid JSON at line 1 column"),
        (b"{}".to_vec(), "apiVersion: must be admission.k8s.io/v1 or v1beta1"),
        (body(&json!({"apiVersion": "admission.k8s.io/v2"})).to_string().into_bytes(), "apiVersion: must be"),
        (body(&json!({"kind": "Pod"})).to_string().into_bytes(), "kind: must be AdmissionReview"),
        (body(&json!({"request": null})).to_string().into_bytes(), "request: required"),
        (body(&json!({"request": {"uid": ""}})).to_string().into_bytes(), "request.uid: required"),
        (
            body(&json!({"request": {"uid": 7}})).to_string().into_bytes(),
            "request: a field has the wrong type",
        ),
    ];
    for (body, words) in cases {
        let error = review(&body, &settings()).expect_err(words).to_string();
        assert!(error.starts_with(words), "{error}, not {words}");
    }
}

#[test]
fn warnings_are_truncated_to_the_limits_of_the_api_server() {
    let warning = |index: usize| Warning::about_pod(Code::Host, format!("{index}: {}", "x".repeat(400)));
    let warnings: Vec<Warning> = (0..40).map(warning).collect();
    let texts = truncated_warnings(&warnings);
    assert!(texts.iter().all(|text| text.chars().count() <= 256));
    assert!(texts.iter().map(String::len).sum::<usize>() <= 4096);
    assert_eq!(
        texts.last().map(String::as_str),
        Some("app-health: 25 more, see annotation app-health.io/warnings")
    );
    assert_eq!(super::truncated_warnings(&warnings[..15]).len(), 15);
}

#[test]
fn the_uid_is_read_from_any_valid_review() {
    assert_eq!(uid(body(&json!({})).to_string().as_bytes()).as_deref(), Some("u1"));
    assert_eq!(uid(b"nonsense"), None);
}
