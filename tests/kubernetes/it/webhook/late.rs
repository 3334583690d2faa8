//! A test with a second, external webhook that adds a container with a probe after the project's
//! webhook was called.

use std::net::Ipv4Addr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use kit::authority::Authority;
use kubernetes_tests::Cluster;
use serde_json::{Value, json};
use serving::http_server::{self, HttpRequest, Limits, Server, ServerMetrics, Stages, Tls};
use serving::tls::{self, Pem};
use tokio::sync::watch;

use super::{Fixture, is_injected, pod};

pub(super) fn reinvoked(fixture: &mut Fixture) {
    let runtime = start(&fixture.cluster);
    let mut pod = pod("shop", "late");
    pod["metadata"]["labels"] = json!({"late": "please"});
    let created = || {
        fixture.cluster.kubectl(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod.to_string())
    };
    // The API server calls a new webhook only after a short time.
    fixture.wait_until("the late webhook is called", || {
        String::from_utf8_lossy(&created().stdout).contains("late:1")
    });
    let created: Value = serde_json::from_slice(&created().stdout).expect("JSON");
    let late = &created["spec"]["containers"][1];
    assert_eq!(late["livenessProbe"]["httpGet"]["path"], "/app-health/late/livez", "{created}");
    assert!(
        created.to_string().contains(r#"\"/app-health/late/livez\":{\"tcpSocket\":{\"port\":9090}"#),
        "{created}"
    );
    assert!(is_injected(&created), "the first container must still be injected");
    fixture.cluster.kubectl_ok(&["delete", "mutatingwebhookconfiguration", "zz-late"], "");
    runtime.shutdown_background();
}

/// Starts the webhook, which serves until the returned runtime is dropped.
fn start(cluster: &Cluster) -> tokio::runtime::Runtime {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let authority = Authority::new();
    let issued = authority.sign("127.0.0.1");
    let pem = |content: &str| Pem::new("issued", content.as_bytes());
    let (chain, key) = (pem(&issued.certificate), pem(&issued.key));
    let config = tls::server_config(&chain, &key, None, b"http/1.1").expect("a pair");
    let server =
        Server { name: "late", paths: &[], limits: Limits::KEEP_ALIVE, metrics: ServerMetrics::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(1)
        .build()
        .expect("a runtime");
    // The listener belongs to the runtime.
    let entered = runtime.enter();
    let listener = http_server::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let port = listener.local_addr().expect("a bound listener has an address").port();
    drop(entered);
    runtime.spawn(async move {
        let answer = |request: HttpRequest| async move {
            let body = request.body.collect().await.expect("a body").to_bytes();
            let answer = answer(&serde_json::from_slice(&body).expect("a review"));
            http_server::json(StatusCode::OK, Bytes::from(answer.to_string()))
        };
        let tls = Tls::new(watch::channel(Arc::new(config)).1);
        http_server::serve(listener, tls, server, Stages::default(), answer).await;
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "zz-late"},
        "webhooks": [{
            "name": "late.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/"), "caBundle": STANDARD.encode(authority.pem())},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "objectSelector": {"matchLabels": {"late": "please"}},
        }],
    });
    cluster.apply(&configuration.to_string());
    runtime
}

fn answer(review: &Value) -> Value {
    let late = json!({"name": "late", "image": "late:1", "livenessProbe": {"tcpSocket": {"port": 9090}}});
    let patch = json!([{"op": "add", "path": "/spec/containers/-", "value": late}]);
    json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())},
    })
}
