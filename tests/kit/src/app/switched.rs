//! Servers whose behavior can be changed while they run.

use std::net::SocketAddr;

use tokio::sync::watch;
use tonic_health::ServingStatus;

use super::grpc::GrpcApp;
use super::{App, Step, answer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// Responds with 200.
    Serving,
    /// Responds with 503.
    Failing,
    /// Accepts the request and sends no response.
    Hanging,
}

impl Behavior {
    const ALL: [Self; 3] = [Self::Serving, Self::Failing, Self::Hanging];

    pub fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Failing => "failing",
            Self::Hanging => "hanging",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|behavior| behavior.name() == name)
    }
}

/// Returns the steps of an HTTP server for one request.
pub fn http(behavior: Behavior) -> Vec<Step> {
    match behavior {
        Behavior::Serving => text("200 OK", "text/plain", "fine\n"),
        Behavior::Failing => text("503 Service Unavailable", "text/plain", "no database\n"),
        Behavior::Hanging => vec![Step::Hang],
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
    mut behavior: watch::Receiver<Behavior>,
    applied: impl Fn(Behavior) + Send + Sync + 'static,
) -> GrpcApp {
    let switch = behavior.clone();
    let hangs = move || *switch.borrow() == Behavior::Hanging;
    let (server, reporter) = GrpcApp::real_unless(address, hangs).await;
    let apply = async move |behavior: Behavior| {
        let status = match behavior {
            Behavior::Failing => ServingStatus::NotServing,
            Behavior::Serving | Behavior::Hanging => ServingStatus::Serving,
        };
        reporter.set_service_status("", status).await;
        applied(behavior);
    };
    let first = *behavior.borrow_and_update();
    apply(first).await;
    tokio::spawn(async move {
        while behavior.changed().await.is_ok() {
            let next = *behavior.borrow_and_update();
            apply(next).await;
        }
    });
    server
}

/// Listens like a database: it closes its port when failing, and accepts connections when serving
/// or hanging. It calls `applied` after each change. Returns when the sender of `behavior` is
/// dropped.
pub async fn tcp(address: SocketAddr, mut behavior: watch::Receiver<Behavior>, applied: impl Fn(Behavior)) {
    let mut listening: Option<App> = None;
    loop {
        let next = *behavior.borrow_and_update();
        match (next, listening.take()) {
            (Behavior::Failing, Some(app)) => app.stop().await,
            (Behavior::Failing, None) => {}
            (_, Some(app)) => listening = Some(app),
            (_, None) => listening = Some(App::routes(address, None, |_| Vec::new()).await),
        }
        applied(next);
        if behavior.changed().await.is_err() {
            return;
        }
    }
}
