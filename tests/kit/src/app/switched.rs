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
    /// All behaviours by name.
    pub const ALL: [(&str, Self); 3] =
        [("serving", Self::Serving), ("failing", Self::Failing), ("hanging", Self::Hanging)];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(its, behaviour)| (its == name).then_some(behaviour))
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
pub async fn grpc(address: SocketAddr, mut behaviour: watch::Receiver<Behaviour>) -> GrpcApp {
    let switch = behaviour.clone();
    let hangs = move || *switch.borrow() == Behaviour::Hanging;
    let (server, reporter) = GrpcApp::real_unless(address, hangs).await;
    tokio::spawn(async move {
        loop {
            let status = match *behaviour.borrow_and_update() {
                Behaviour::Failing => ServingStatus::NotServing,
                Behaviour::Serving | Behaviour::Hanging => ServingStatus::Serving,
            };
            reporter.set_service_status("", status).await;
            if behaviour.changed().await.is_err() {
                return;
            }
        }
    });
    server
}

/// Listens like a database: it closes its port when failing, and accepts connections when serving
/// or hanging. Returns when the sender of `behaviour` is dropped.
pub async fn tcp(address: SocketAddr, mut behaviour: watch::Receiver<Behaviour>) {
    while behaviour.wait_for(|behaviour| *behaviour != Behaviour::Failing).await.is_ok() {
        let listener = App::routes(address, None, |_| Vec::new()).await;
        let is_over = behaviour.wait_for(|behaviour| *behaviour == Behaviour::Failing).await.is_err();
        drop(listener);
        if is_over {
            return;
        }
        // The port is free only after the aborted listener task has run once more.
        tokio::task::yield_now().await;
    }
}
