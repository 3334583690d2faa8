//! The connection between the health reporter and the xDS proxy.

use tokio::sync::{mpsc, oneshot};

use super::xds::{Request, Response};

/// A health reporter that waits for an upstream stream.
pub struct HealthLink {
    /// Requests of the reporter; `None` once it sends no more.
    pub requests: Option<mpsc::Receiver<Request>>,
    pub responses: mpsc::Sender<Response>,
    /// Receives the address and the name of the server once reports may be sent.
    pub opened: Option<oneshot::Sender<(String, String)>>,
}

impl HealthLink {
    /// Returns the next request. `None`, once, after the last one; never returns after that.
    pub async fn next_request(&mut self) -> Option<Request> {
        let Some(requests) = &mut self.requests else { return std::future::pending().await };
        let request = requests.recv().await;
        if request.is_none() {
            self.requests = None;
        }
        request
    }

    /// Sends a response to the reporter. A reporter that reads nothing misses it: it repeats a report
    /// that is not acknowledged.
    pub fn respond(&self, response: Response) {
        let _ = self.responses.try_send(response);
    }
}
