//! Servers whose behaviour can be changed while they run.

use std::net::SocketAddr;

use tokio::sync::watch;
use tonic_health::ServingStatus;

use super::grpc::GrpcApp;
use super::{App, Step, answer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Responds with 200.
    Serving,
    /// Responds with 503.
    Failing,
    /// Accepts the request and sends no response.
    Hanging,
}

impl Behaviour {
    const ALL: [Self; 3] = [Self::Serving, Self::Failing, Self::Hanging];

    pub fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Failing => "failing",
            Self::Hanging => "hanging",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|behaviour| behaviour.name() == name)
    }
}

/// Returns the steps of an HTTP server for one request.
pub fn http(behaviour: Behaviour) -> Vec<Step> {
    match behaviour {
        Behaviour::Serving => text("200 OK", "text/plain", "fine\n"),
        Behaviour::Failing => text("503 Service Unavailable", "text/plain", "no database\n"),
        Behaviour::Hanging => vec![Step::Hang],
    }
}

/// Returns a step that writes an HTTP/1.1 response; the connection closes after it.
pub fn text(status: &str, kind: &str, body: &str) -> Vec<Step> {
    answer(format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// Starts a real health server that responds SERVING or NOT_SERVING, or does not respond at all.
/// It calls `applied` after each change, and before this function returns.
pub async fn grpc(
    address: SocketAddr,
    mut behaviour: watch::Receiver<Behaviour>,
    applied: impl Fn(Behaviour) + Send + Sync + 'static,
) -> GrpcApp {
    let switch = behaviour.clone();
    let hangs = move || *switch.borrow() == Behaviour::Hanging;
    let (server, reporter) = GrpcApp::real_unless(address, hangs).await;
    let apply = async move |behaviour: Behaviour| {
        let status = match behaviour {
            Behaviour::Failing => ServingStatus::NotServing,
            Behaviour::Serving | Behaviour::Hanging => ServingStatus::Serving,
        };
        reporter.set_service_status("", status).await;
        applied(behaviour);
    };
    let first = *behaviour.borrow_and_update();
    apply(first).await;
    tokio::spawn(async move {
        while behaviour.changed().await.is_ok() {
            let next = *behaviour.borrow_and_update();
            apply(next).await;
        }
    });
    server
}

/// Listens like a database: it closes its port when failing, and accepts connections when serving
/// or hanging. It calls `applied` after each change. Returns when the sender of `behaviour` is
/// dropped.
pub async fn tcp(
    address: SocketAddr,
    mut behaviour: watch::Receiver<Behaviour>,
    applied: impl Fn(Behaviour),
) {
    let mut listening: Option<App> = None;
    loop {
        let next = *behaviour.borrow_and_update();
        match (next, listening.take()) {
            (Behaviour::Failing, Some(app)) => app.stop().await,
            (Behaviour::Failing, None) => {}
            (_, Some(app)) => listening = Some(app),
            (_, None) => listening = Some(App::routes(address, None, |_| Vec::new()).await),
        }
        applied(next);
        if behaviour.changed().await.is_err() {
            return;
        }
    }
}
