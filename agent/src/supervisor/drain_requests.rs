//! Sends the requests of a drain to Envoy's admin interface, one at a time.

use std::pin::Pin;
use std::time::Duration;

use crate::address::HttpUrl;
use crate::drain::Step;
use crate::envoy::admin_client;

/// Timeout of each request.
const DEADLINE: Duration = Duration::from_secs(1);

/// Result of a request.
pub(super) enum Answer {
    /// True if Envoy accepted the drain request.
    Told(bool),
    /// Open connections of the application; `None` if Envoy returned no statistics.
    Counted(Option<u64>),
}

/// The request that is in flight, if any.
#[derive(Default)]
pub(super) struct Asking(Option<Pin<Box<dyn Future<Output = Answer> + Send>>>);

impl Asking {
    /// Sends the request for `step`, unless one is in flight; `path` is that of the drain request.
    pub(super) fn ask(&mut self, step: Step, admin: &HttpUrl, path: &'static str) {
        if self.0.is_some() {
            return;
        }
        let admin = admin.clone();
        self.0 = match step {
            Step::Count => Some(Box::pin(async move {
                Answer::Counted(admin_client::open_connections(&admin, DEADLINE).await)
            })),
            Step::Tell => {
                Some(Box::pin(async move { Answer::Told(admin_client::tell(&admin, path, DEADLINE).await) }))
            }
            Step::Rest | Step::Wait(_) | Step::End => None,
        };
    }

    /// Waits for the result. The future is cancel safe.
    pub(super) async fn answer(&mut self) -> Answer {
        let Some(question) = &mut self.0 else { return std::future::pending().await };
        let answer = question.as_mut().await;
        self.0 = None;
        answer
    }
}
