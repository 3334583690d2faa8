//! The metrics and labels of the alerts and dashboards in `envoy-config/monitoring/` are those that an
//! agent with its Envoy, discovery and the webhook export.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use kit::app::switched::Behavior;
use kit::monitoring::{
    self, Alert, Exported, Expression, Series, TARGET_LABELS, alerts, dashboards, elements, exported,
    grouping_labels, panel_expressions, series_of, variable_queries, yaml,
};
use kit::sidecar::{Builder, Sidecar};
use kit::vm::application::{Application, READY_PATH};
use kit::vm::certificates::{Authority, DISCOVERY_NAME, replace};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, PORT, group, probe, service};
use kit::vm::envoy_stream::EnvoyStream;
use kit::{caller, envoy, net, wait};
use serde_json::json;

use crate::discovery_support::CDS;
use crate::webhook_support::Webhook;

/// Returns the expressions of all alerts and panels, and the queries of variables.
fn expressions() -> Vec<Expression> {
    let of_alert = |alert: Alert| Expression { origin: alert.name, text: alert.expression };
    let mut expressions: Vec<Expression> = alerts().into_iter().map(of_alert).collect();
    for (name, dashboard) in dashboards() {
        expressions.extend(panel_expressions(&name, &dashboard));
        expressions.extend(variable_queries(&name, &dashboard));
    }
    expressions
}

/// Returns the series in the tests of the alerts.
fn tested_series() -> Vec<Series> {
    let tests = yaml(&monitoring::folder().join("rules.test.yaml"));
    elements(&tests["tests"])
        .flat_map(|test| elements(&test["input_series"]))
        .flat_map(|input| series_of(input["series"].as_str().expect("a series")))
        .collect()
}

/// Returns the webhook's metrics after a request that it rejected and a certificate that it cannot
/// load.
fn webhook_metrics() -> String {
    let webhook = Webhook::start("monitoring", &[], &[]);
    let answer = webhook.call().post("not JSON").expect("an answer");
    assert_eq!(answer.status, 400, "{answer:?}");
    fs::write(webhook.folder.join("tls.crt"), "not PEM").expect("a file");
    webhook.wait_for_metric("app_health_webhook_reloads_total{kind=\"certificate\",result=\"failure\"}");
    webhook.page("/metrics").expect("a page").1
}

/// Starts an agent with an Envoy whose process was killed once, on a machine of this discovery.
async fn sidecar(discovery: &Discovery, application: SocketAddr) -> Sidecar {
    let server = discovery.plaintext().to_string();
    let probers = json!({
        "/app-health/app/readyz": {"httpGet": {"path": READY_PATH, "port": PORT}},
        "/app-health/app/livez": {"tcpSocket": {"port": PORT}},
    });
    let sidecar = Builder::again("monitoring", application.ip())
        .args(&["--proxy-xds", "--discovery", &server, "--discovery-plaintext", "--envoy-readiness", "off"])
        .args(&["--group", GROUP, "--namespace", NAMESPACE, "--service-account", GROUP])
        // A port of the proxy, which is ignored as a target, and reported in a metric.
        .args(&["--envoy-restart", "always", "--metrics-target", "15020"])
        .env("ISTIO_KUBE_APP_PROBERS", &probers.to_string())
        .start();
    sidecar.until(200, "ready").await;
    let envoy = sidecar.envoy_pid().to_string();
    assert!(Command::new("kill").args(["-KILL", &envoy]).status().is_ok_and(|status| status.success()));
    let exits = async || sidecar.metric("app_health_agent_envoy_exits_total").await >= 1.0;
    wait::until("the exit of Envoy is counted", exits).await;
    sidecar.until(200, "ready").await;
    sidecar
}

/// Starts discovery with an agent and its Envoy, and causes every event that a counter of theirs needs
/// to appear.
async fn machine() -> (Discovery, Application, Sidecar) {
    let folder = envoy::folder("monitoring");
    let certificate = Authority::new().issue(&folder, "discovery", DISCOVERY_NAME);
    let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).tls(&certificate);
    discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    let application = Application::start("monitoring", SocketAddr::new(net::loopback(), PORT)).await;
    let sidecar = sidecar(&discovery, application.address).await;
    let answer = caller::probe(envoy::probe_listener(sidecar.ip), "/app-health/app/readyz").await;
    assert_eq!(answer.status, 200, "{answer:?}\n{}", sidecar.log());
    application.set_behavior(Behavior::Failing);

    let mut client = EnvoyStream::open_tcp(discovery.plaintext(), CDS, &[]).await;
    let response = client.response().await;
    client.reject(&response, &[], "no such field").await;
    caller::send(discovery.secure(), b"not TLS").await;
    replace(&certificate.certificate, "not PEM");
    // The counter of the rejected response appears before the client disconnects.
    let is_rejected = async || discovery.metrics().await.contains("app_health_discovery_nacks_total{");
    wait::until("the rejected response is counted", is_rejected).await;
    (discovery, application, sidecar)
}

/// Returns the series of `wanted` that are missing in `found`: the metric, a label, or the value of a
/// label.
fn missing(wanted: &[(String, Series)], found: &Exported) -> Vec<String> {
    let is_missing = |series: &Series| {
        let Some(labels) = found.get(&series.metric) else { return true };
        let mut own = series.labels.iter().filter(|(label, _)| !TARGET_LABELS.contains(&label.as_str()));
        own.any(|(label, value)| {
            let values = labels.get(label);
            values.is_none_or(|values| value.as_ref().is_some_and(|value| !values.contains(value)))
        })
    };
    let missing = wanted.iter().filter(|(_, series)| is_missing(series));
    missing.map(|(origin, series)| format!("{origin}: {} {:?}", series.metric, series.labels)).collect()
}

#[tokio::test]
async fn every_metric_and_label_is_exported() {
    let webhook = webhook_metrics();
    let (discovery, _application, sidecar) = machine().await;

    let expressions = expressions();
    let mut wanted = Vec::new();
    for Expression { origin, text } in &expressions {
        wanted.extend(series_of(text).into_iter().map(|series| (origin.clone(), series)));
    }
    assert!(wanted.len() > 100, "{} series", wanted.len());
    let mut found = Exported::new();
    // Agents probe once a second, and Envoy merges its histograms from time to time.
    let are_exported = async || {
        let agent = caller::probe(envoy::probe_listener(sidecar.ip), "/stats/prometheus").await.text();
        found = exported(&[&webhook, &agent, &discovery.metrics().await].map(String::as_str).concat());
        missing(&wanted, &found).is_empty().then(|| found.clone())
    };
    let found = match wait::try_poll(are_exported).await {
        Some(found) => found,
        None => panic!("not exported: {:#?}\n{}", missing(&wanted, &found), sidecar.log()),
    };

    for Expression { origin, text } in &expressions {
        let metrics = series_of(text);
        // All metrics have the names of Istio's: a test of `istio-agent` knows them.
        if metrics.is_empty() {
            continue;
        }
        for label in grouping_labels(text) {
            let has_label = |series: &Series| found[&series.metric].contains_key(&label);
            let is_known = TARGET_LABELS.contains(&label.as_str()) || metrics.iter().any(has_label);
            assert!(is_known, "{origin}: no metric has the label {label}");
        }
    }
    let tested = tested_series();
    assert!(tested.len() > 40, "{} series", tested.len());
    for series in tested {
        let labels = series.labels.keys().filter(|label| !TARGET_LABELS.contains(&label.as_str()));
        let exported: BTreeSet<&String> = found[&series.metric].keys().collect();
        assert_eq!(labels.collect::<BTreeSet<&String>>(), exported, "{}", series.metric);
    }
}
