//! Sends the requests of a drain to Envoy's admin interface, one at a time.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use address::HttpUrl;
use http_client::admin_client;
use readiness::listeners::DrainScope;
use readiness::listeners::{DrainPlan, Listener};

const DEADLINE: Duration = Duration::from_secs(1);
/// At the start there is time, and Envoy has much to do.
const START_DEADLINE: Duration = Duration::from_secs(10);

pub(super) enum DrainResponse {
    /// The listeners, or `None` if they are unknown.
    Listeners(Option<Vec<Listener>>),
    DrainSent {
        plan: DrainPlan,
        are_listeners_known: bool,
        is_accepted: bool,
    },
    /// Open connections of the application; `None` if Envoy returned no statistics.
    Connections(Option<u64>),
}

/// The request that is in flight, if any.
#[derive(Default)]
pub(super) struct DrainRequests(Option<Pin<Box<dyn Future<Output = DrainResponse> + Send>>>);

impl DrainRequests {
    /// Queries the listeners, unless a request is in flight.
    pub(super) fn query_listeners(&mut self, admin: &HttpUrl) {
        let admin = admin.clone();
        self.send(
            async move { DrainResponse::Listeners(admin_client::listeners(&admin, START_DEADLINE).await) },
        );
    }

    /// Sends the drain request for the current listeners. If Envoy does not return them in time, those of
    /// the start count: `known`.
    pub(super) fn drain(&mut self, admin: &HttpUrl, scope: DrainScope, known: &Option<Vec<Listener>>) {
        let (admin, known) = (admin.clone(), known.clone());
        self.send(async move {
            let listeners = timeout(DEADLINE, admin_client::listeners(&admin, DEADLINE)).await;
            let listeners = listeners.ok().flatten().or(known);
            let plan = DrainPlan::new(scope, listeners.as_deref());
            let is_accepted = admin_client::post(&admin, plan.path, DEADLINE).await;
            DrainResponse::DrainSent { plan, are_listeners_known: listeners.is_some(), is_accepted }
        });
    }

    pub(super) fn count_connections(&mut self, admin: &HttpUrl, plan: DrainPlan) {
        let admin = admin.clone();
        self.send(async move {
            DrainResponse::Connections(admin_client::open_connections(&admin, &plan, DEADLINE).await)
        });
    }

    fn send(&mut self, request: impl Future<Output = DrainResponse> + Send + 'static) {
        if self.0.is_none() {
            self.0 = Some(Box::pin(request));
        }
    }

    /// Waits for the result. The future is cancel safe.
    pub(super) async fn recv(&mut self) -> DrainResponse {
        let Some(request) = &mut self.0 else { return std::future::pending().await };
        let response = request.as_mut().await;
        self.0 = None;
        response
    }
}
