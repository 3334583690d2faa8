//! The connection between the health reporter and the xDS proxy.

use tokio::sync::{mpsc, oneshot};

use super::xds::{Request, Response};

/// A health reporter that waits for an upstream stream.
pub struct HealthLink {
    /// Requests of the reporter; closed when the reporter needs another stream.
    pub requests: mpsc::Receiver<Request>,
    pub responses: mpsc::Sender<Response>,
    /// Receives the address and the name of the server once reports may be sent.
    pub opened: Option<oneshot::Sender<(String, String)>>,
}

impl HealthLink {
    /// Sends a response to the reporter. A reporter that reads nothing misses it: it repeats a report
    /// that is not acknowledged.
    pub fn respond(&self, response: Response) {
        let _ = self.responses.try_send(response);
    }
}
