//! Sends the requests of a drain to Envoy's admin interface, one at a time.

use std::pin::Pin;
use std::time::Duration;

use crate::address::HttpUrl;
use crate::drain::Step;
use crate::envoy::admin_client;

const DEADLINE: Duration = Duration::from_secs(1);

pub(super) enum DrainResponse {
    DrainSent(bool),
    /// Open connections of the application; `None` if Envoy returned no statistics.
    Connections(Option<u64>),
}

/// The request that is in flight, if any.
#[derive(Default)]
pub(super) struct DrainRequests(Option<Pin<Box<dyn Future<Output = DrainResponse> + Send>>>);

impl DrainRequests {
    /// Sends the request for `step`, unless one is in flight; `path` is that of the drain request.
    pub(super) fn send(&mut self, step: Step, admin: &HttpUrl, path: &'static str) {
        if self.0.is_some() {
            return;
        }
        let admin = admin.clone();
        self.0 = match step {
            Step::CountConnections => Some(Box::pin(async move {
                DrainResponse::Connections(admin_client::open_connections(&admin, DEADLINE).await)
            })),
            Step::SendDrain => Some(Box::pin(async move {
                DrainResponse::DrainSent(admin_client::post(&admin, path, DEADLINE).await)
            })),
            Step::Idle | Step::WaitUntil(_) | Step::End => None,
        };
    }

    /// Waits for the result. The future is cancel safe.
    pub(super) async fn recv(&mut self) -> DrainResponse {
        let Some(request) = &mut self.0 else { return std::future::pending().await };
        let response = request.as_mut().await;
        self.0 = None;
        response
    }
}
