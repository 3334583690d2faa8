//! Servers with a switch between the ways in which they behave.

use std::net::SocketAddr;

use tokio::sync::watch;
use tonic_health::ServingStatus;

use super::grpc::GrpcApp;
use super::{App, Step, answer};

/// What a server does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers 200.
    Serving,
    /// Answers 503.
    Failing,
    /// Takes the request and never answers.
    Hanging,
}

impl Behaviour {
    /// Every one, with its name.
    pub const ALL: [(&str, Self); 3] =
        [("serving", Self::Serving), ("failing", Self::Failing), ("hanging", Self::Hanging)];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(its, behaviour)| (its == name).then_some(behaviour))
    }
}

/// What an HTTP server does with a request.
pub fn http(behaviour: Behaviour) -> Vec<Step> {
    match behaviour {
        Behaviour::Serving => text("200 OK", "text/plain", "fine\n"),
        Behaviour::Failing => text("503 Service Unavailable", "text/plain", "no database\n"),
        Behaviour::Hanging => vec![Step::Hang],
    }
}

/// An answer over HTTP/1.1, and the end of the connection.
pub fn text(status: &str, kind: &str, body: &str) -> Vec<Step> {
    answer(format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// A real health server: SERVING, NOT_SERVING, or it takes the connection and says nothing.
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

/// A database: one that is down does not listen, and one that hangs takes connections like a good one. Runs until the switch is gone.
pub async fn tcp(address: SocketAddr, mut behaviour: watch::Receiver<Behaviour>) {
    while behaviour.wait_for(|behaviour| *behaviour != Behaviour::Failing).await.is_ok() {
        let listener = App::routes(address, None, |_| Vec::new()).await;
        let is_over = behaviour.wait_for(|behaviour| *behaviour == Behaviour::Failing).await.is_err();
        drop(listener);
        if is_over {
            return;
        }
        // The listener's task ends at its next turn; only then the port is free.
        tokio::task::yield_now().await;
    }
}
