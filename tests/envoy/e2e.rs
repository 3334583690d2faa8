//! Support for the end-to-end tests: rows of an application and a prober, which are all probed
//! concurrently through one Envoy.

use futures_util::future::join_all;
use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::{self, Tls};
use kit::app::{App, Step};
use kit::envoy::Version;
use kit::net;
use kit::pod::Pod;
use kit::reserved_port::ReservedPort;
use serde_json::{Map, Value, json};

/// The server that listens on the probed port.
pub(crate) enum Listens {
    /// A scripted application.
    Plain(Vec<Step>),
    /// A scripted application that serves over TLS.
    OverTls(Tls, Vec<Step>),
    /// A gRPC server that always gives this answer, over TLS if one is set.
    Grpc(Option<Tls>, GrpcAnswer),
    /// The port is closed.
    Closed,
}

/// One application, one prober, and the expected response to the probe.
pub(crate) struct Row {
    /// The name of the row is also the container's name.
    pub(crate) name: &'static str,
    pub(crate) app: Listens,
    /// In the prober, `"PORT"` is replaced by the application's port.
    pub(crate) prober: Value,
    /// The status that kubelet gets.
    pub(crate) status: u16,
    /// The reason word of the response body; empty if the body must be empty.
    pub(crate) word: &'static str,
}

enum Running {
    App(App),
    Grpc(GrpcApp),
    Closed(ReservedPort),
}

impl Running {
    fn port(&self) -> u16 {
        match self {
            Self::App(app) => app.port(),
            Self::Grpc(app) => app.port(),
            Self::Closed(port) => port.port(),
        }
    }
}

/// Starts the application of every row and one Envoy with all probers, probes them concurrently,
/// and fails with a list of all rows whose response differs from the expected one.
pub(crate) async fn check(name: &str, rows: Vec<Row>) {
    check_with(name, Version::Newest, rows).await;
}

/// Does the same as [`check`] with this version of Envoy.
pub(crate) async fn check_with(name: &str, version: Version, rows: Vec<Row>) {
    tls::install_provider();
    let ip = net::loopback();
    let mut running = Vec::new();
    let mut table = Map::new();
    for row in &rows {
        let app = match &row.app {
            Listens::Plain(steps) => Running::App(App::start(ip, steps.clone()).await),
            Listens::OverTls(tls, steps) => {
                Running::App(App::start_tls(ip, tls.acceptor(), steps.clone()).await)
            }
            Listens::Grpc(tls, answer) => {
                let acceptor = tls.as_ref().map(Tls::acceptor);
                Running::Grpc(GrpcApp::scripted(ip, acceptor, answer.clone()).await)
            }
            Listens::Closed => Running::Closed(ReservedPort::new(ip)),
        };
        let prober = row.prober.to_string().replace("\"PORT\"", &app.port().to_string());
        let mut prober: Value = serde_json::from_str(&prober).expect("a prober is JSON");
        // Only an expected timeout comes after Kubernetes' default, a second.
        if row.status != 504 && prober["timeoutSeconds"].is_null() {
            prober["timeoutSeconds"] = 60.into();
        }
        let before = table.insert(format!("/app-health/{}/readyz", row.name), prober);
        assert!(before.is_none(), "two rows have the name {}", row.name);
        running.push(app);
    }
    let bootstrap = Pod::bootstrap(name, ip, &Value::Object(table));
    let pod = Pod::with(name, version, &bootstrap).await;
    let mut wrong = Vec::new();
    // A batch stays below the limits of the circuit breakers and of the rate limit.
    for batch in rows.chunks(16) {
        let answers = join_all(batch.iter().map(|row| pod.probe(row.name))).await;
        for (row, answer) in batch.iter().zip(answers) {
            let word = if answer.text().trim().is_empty() { String::new() } else { answer.word() };
            if (answer.status, word.as_str()) != (row.status, row.word) {
                wrong.push(format!(
                    "{}: {} {:?}, expected {} {:?}",
                    row.name, answer.status, word, row.status, row.word
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), pod.envoy.log());
    pod.envoy.stop().await;
}

/// An `httpGet` prober of `/` on the application's port.
pub(crate) fn http_get() -> Value {
    json!({"httpGet": {"port": "PORT", "path": "/"}})
}

/// An `httpGet` prober of `/` on the application's port, with the scheme HTTPS.
pub(crate) fn https_get() -> Value {
    json!({"httpGet": {"port": "PORT", "path": "/", "scheme": "HTTPS"}})
}
