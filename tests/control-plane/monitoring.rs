//! The metrics and labels of the alerts and dashboards in `envoy-config/monitoring/` are those that an
//! agent with its Envoy, discovery and the webhook export.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use kit::monitoring::{
    self, Alert, Expression, Series, TARGET_LABELS, alerts, dashboards, elements, exported, grouping_labels,
    panel_expressions, series_of, variable_queries, yaml,
};
use kit::sidecar::{Builder, Sidecar};
use kit::vm::application::{Application, READY_PATH};
use kit::vm::certificates::{Authority, DISCOVERY_NAME, replace};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, PORT, group, probe, service};
use kit::vm::envoy_stream::EnvoyStream;
use kit::{caller, envoy, net, wait};

use crate::discovery_support::CDS;
use crate::webhook_support::Webhook;

type Metrics = BTreeMap<String, BTreeSet<String>>;

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
    let probers =
        format!(r#"{{"/app-health/app/readyz": {{"httpGet": {{"path": "{READY_PATH}", "port": {PORT}}}}}}}"#);
    let sidecar = Builder::again("monitoring", application.ip())
        .args(&["--proxy-xds", "--discovery", &server, "--discovery-plaintext", "--envoy-readiness", "off"])
        .args(&["--group", GROUP, "--namespace", NAMESPACE, "--service-account", GROUP])
        // A port of the proxy, which is ignored as a target, and reported in a metric.
        .args(&["--envoy-restart", "always", "--metrics-target", "15020"])
        .env("ISTIO_KUBE_APP_PROBERS", &probers)
        .start();
    sidecar.until(200, "ready").await;
    let envoy = sidecar.envoy_pid().to_string();
    assert!(Command::new("kill").args(["-KILL", &envoy]).status().is_ok_and(|status| status.success()));
    let exits = async || sidecar.metric("app_health_agent_envoy_exits_total").await >= 1.0;
    wait::until("the exit of Envoy is counted", exits).await;
    sidecar.until(200, "ready").await;
    sidecar
}

/// Returns the metrics in `wanted` that are missing in `found`, and the labels that are.
fn missing(wanted: &[(String, Series)], found: &Metrics) -> Vec<String> {
    let is_missing = |series: &Series| {
        let Some(labels) = found.get(&series.metric) else { return true };
        series.labels.iter().any(|label| !labels.contains(label) && !TARGET_LABELS.contains(&label.as_str()))
    };
    let missing = wanted.iter().filter(|(_, series)| is_missing(series));
    missing.map(|(origin, series)| format!("{origin}: {} {:?}", series.metric, series.labels)).collect()
}

#[tokio::test]
async fn every_metric_and_label_is_exported() {
    let webhook = webhook_metrics();

    let folder = envoy::folder("monitoring");
    let certificate = Authority::new().issue(&folder, "discovery", DISCOVERY_NAME);
    let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).tls(&certificate);
    discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
    let application = Application::start("monitoring", SocketAddr::new(net::loopback(), PORT)).await;
    let sidecar = sidecar(&discovery, application.address).await;
    let mut client = EnvoyStream::open_tcp(discovery.plaintext(), CDS, &[]).await;
    let response = client.response().await;
    client.reject(&response, &[], "no such field");
    caller::send(discovery.secure(), b"GET / HTTP/1.1\r\n\r\n").await;
    replace(&certificate.certificate, "not PEM");
    let listener = envoy::probe_listener(sidecar.ip);
    assert_eq!(caller::probe(listener, "/app-health/app/readyz").await.status, 200);

    let expressions = expressions();
    let wanted: Vec<(String, Series)> = expressions
        .iter()
        .flat_map(|expression| {
            series_of(&expression.text).into_iter().map(|series| (expression.origin.clone(), series))
        })
        .collect();
    let mut found = Metrics::new();
    // Some metrics appear when a counter is first raised, or when Envoy merges its histograms.
    let are_exported = async || {
        let agent = caller::probe(listener, "/stats/prometheus").await.text();
        found = exported(&[&webhook, &agent, &discovery.metrics().await].map(String::as_str).concat());
        missing(&wanted, &found).is_empty().then(|| found.clone())
    };
    let found = match wait::try_poll(are_exported).await {
        Some(found) => found,
        None => panic!("not exported: {:#?}\n{}", missing(&wanted, &found), sidecar.log()),
    };

    for expression in &expressions {
        let metrics = series_of(&expression.text);
        for label in grouping_labels(&expression.text) {
            let has_label = |series: &Series| found[&series.metric].contains(&label);
            let is_known = TARGET_LABELS.contains(&label.as_str()) || metrics.iter().any(has_label);
            assert!(is_known, "{}: no metric has the label {label}", expression.origin);
        }
    }
    let tested = tested_series();
    assert!(tested.len() > 40, "{} series", tested.len());
    for series in tested {
        let is_own = |label: &&String| !TARGET_LABELS.contains(&label.as_str());
        let own: BTreeSet<String> = series.labels.iter().filter(is_own).cloned().collect();
        assert_eq!(Some(&own), found.get(&series.metric), "{}", series.metric);
    }
}
