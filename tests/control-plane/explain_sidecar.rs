//! Tests of `app-health explain` with a real agent and a real Envoy behind a scripted API server.

use std::process::Command;

use kit::app::{App, answer};
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::explain_support::{ApiServer, Routes, Scripted};

const POD: &str = "/api/v1/namespaces/shop/pods/web";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The Pod of the sidecar; kubelet counts its application as ready or not.
fn pod(ready: bool) -> Value {
    let is = if ready { "True" } else { "False" };
    json!({
        "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "initContainers": [{"name": "app-health-proxy", "restartPolicy": "Always"}],
            "containers": [{"name": "app", "readinessProbe": {
                "httpGet": {"path": "/app-health/app/readyz", "port": 15020}, "timeoutSeconds": 60,
            }}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.7",
            "conditions": [{"type": "ContainersReady", "status": is}, {"type": "Ready", "status": is}],
            "initContainerStatuses": [{"name": "app-health-proxy", "ready": true, "started": true, "state": {"running": {}}}],
            "containerStatuses": [{"name": "app", "ready": ready, "started": true, "state": {"running": {}}}],
        },
    })
}

fn explain(server: &ApiServer, sidecar: &Sidecar, ready: bool) -> Value {
    server.set(POD, Scripted::object(&pod(ready)));
    // kubelet adds the time to each line.
    let log = sidecar.log().lines().map(|line| format!("2026-01-01T00:00:00Z {line}\n")).collect();
    server.set(&format!("{POD}/log"), Scripted::Response(200, log));
    let (code, stdout, stderr) =
        block_in_place(|| server.explain(&["pod/web", "--output", "json", "--timeout", "60s"]));
    let mut report: Value =
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    report["exit"] = code.into();
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_of_a_real_sidecar() {
    let builder = Builder::new("explain").args(&["--envoy-restart", "always"]);
    let app = App::start(builder.ip, answer(OK)).await;
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}, "timeoutSeconds": 60}});
    let sidecar = builder.env("ISTIO_KUBE_APP_PROBERS", &table.to_string()).start();
    sidecar.until(200, "ready").await;
    let server = ApiServer::start("sidecar", Routes::new());
    let proxied = |path: &str| server.requests().iter().any(|request| request.contains(path));

    server.forward(POD, sidecar.ip);
    let report = explain(&server, &sidecar, true);
    assert_eq!((&report["exit"], &report["verdict"]), (&json!(0), &json!("healthy")), "{report:#}");
    let group = &report["pods"][0];
    assert_eq!((&group["sidecar"]["phase"], &group["sidecar"]["pending"]), (&json!("ready"), &json!([])));
    assert!(
        group["sidecar"]["envoy"].as_str().is_some_and(|version| version.starts_with("1.")),
        "{report:#}"
    );
    assert!(
        proxied("/web:15020/proxy/app-health/app/readyz")
            && proxied("/web:15021/proxy/healthz/ready?verbose")
    );

    // The word, the number of failures and the time come from the filter.
    app.stop().await;
    let first = explain(&server, &sidecar, false);
    assert_eq!((&first["exit"], &first["cause"]["code"]), (&json!(1), &json!("probe")), "{first:#}");
    let probe = &first["pods"][0]["probes"][0];
    assert_eq!((&probe["status"], &probe["reason"]), (&json!(502), &json!("refused")), "{first:#}");
    let since = |report: &Value| report["pods"][0]["probes"][0]["since"].clone();
    let last = || since(&explain(&server, &sidecar, false));
    wait::until("the log says since when the probe fails", async || last() == "2026-01-01T00:00:00Z").await;
    let report = explain(&server, &sidecar, false);
    let failures = &report["pods"][0]["probes"][0]["failures"];
    assert!(failures.as_u64().is_some_and(|failures| failures > 0), "{report:#}");

    // Envoy exits, and the agent restarts it.
    let envoy = sidecar.envoy_pid();
    let killed = Command::new("kill").args(["-KILL", &envoy.to_string()]).status().expect("kill");
    assert!(killed.success());
    let exits = || explain(&server, &sidecar, false)["pods"][0]["sidecar"]["envoyExits"].clone();
    wait::until("an exit of Envoy is counted", async || exits() == json!({"signal": 1})).await;
    let report = explain(&server, &sidecar, false);
    assert_eq!(report["pods"][0]["sidecar"]["lastEnvoyExit"], "terminated by SIGKILL", "{report:#}");

    sidecar.until(200, "ready").await;
    sidecar.local("POST /drain", "").await;
    sidecar.until(503, "draining").await;
    let report = explain(&server, &sidecar, false);
    assert_eq!((&report["exit"], &report["cause"]["code"]), (&json!(1), &json!("sidecar")), "{report:#}");
    assert_eq!(report["cause"]["text"], "the sidecar is not ready: draining");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sidecar_without_a_control_plane() {
    let sidecar = Builder::new("explain-dynamic").args(&["--dynamic", "on"]).start();
    sidecar.until(503, "clusters not received\nlisteners not received").await;
    let server = ApiServer::start("dynamic", Routes::new());
    server.forward(POD, sidecar.ip);
    let report = explain(&server, &sidecar, false);
    let text = "the sidecar is not ready: clusters not received, listeners not received";
    assert_eq!((&report["exit"], &report["cause"]["text"]), (&json!(1), &json!(text)), "{report:#}");
}
