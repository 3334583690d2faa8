//! What a request of Envoy says about the responses before it.
//!
//! In state of the world, Envoy may send one request for several responses: it sends none for clusters
//! while some of them warm. The request has the newest nonce, the version that Envoy accepted last, and
//! the error of the last rejected response, which may be older than the newest one. In the incremental
//! variant each response has its own request.

use std::ops::Range;

use xds::{Request, Variant};

use super::{Delivered, ServerNonce, ServerVersion, TypeState};

/// What a request says about one response.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Envoy accepted the response.
    Ack(Delivered),
    /// Envoy rejected the response with this text.
    Nack(Delivered, String),
    /// Envoy rejected or ignored the response, or the request does not say what Envoy did.
    Unknown(Delivered),
}

/// What a request says about the responses before it.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// The server's nonce for the one of the request.
    pub(super) server: Option<ServerNonce>,
    /// In the order of the responses; none if the request only changes the subscription.
    pub(super) verdicts: Vec<Verdict>,
    /// The server's nonce of an older response, if the error of the request is the one of that response.
    pub(super) rejected: Option<ServerNonce>,
}

impl TypeState {
    /// Finds the responses that a request settles, and the server's nonce for the request.
    pub(super) fn settle(&mut self, request: &Request) -> Settled {
        let Ok(nonce) = request.nonce.parse::<u64>() else { return Settled::default() };
        let Some(newest) = self.in_flight.iter().position(|delivered| delivered.ours == nonce) else {
            let last = self.last.as_ref().filter(|(ours, _)| *ours == nonce);
            return Settled { server: last.and_then(|(_, server)| server.clone()), ..Settled::default() };
        };
        let accepted = self.accepted_range(newest, request);
        // An error that cannot be read rejects the response too.
        let mut error = request.error_text().unwrap_or_else(|_| Some(String::new()));
        let with_error = if accepted.contains(&newest) { newest.checked_sub(1) } else { Some(newest) };
        let mut settled = Settled::default();
        for (index, delivered) in self.in_flight.drain(..=newest).enumerate() {
            let server = delivered.server.clone();
            settled.verdicts.push(if accepted.contains(&index) {
                let version = delivered.content.version.clone();
                self.accepted =
                    server.as_ref().map(|server| ServerVersion { stream: server.stream, version });
                Verdict::Ack(delivered)
            } else if let Some(text) = error.take_if(|_| Some(index) == with_error) {
                settled.rejected = server.clone().filter(|_| index < newest);
                Verdict::Nack(delivered, text)
            } else {
                Verdict::Unknown(delivered)
            });
            settled.server = server;
        }
        settled
    }

    /// Returns which of the unacknowledged responses up to the newest one Envoy has accepted for certain.
    fn accepted_range(&self, newest: usize, request: &Request) -> Range<usize> {
        let has_error = request.error.is_some();
        // The error cannot be an older one.
        let is_rejected = has_error && (newest == 0 || self.variant == Variant::Delta);
        if is_rejected {
            return 0..0;
        }
        if self.variant == Variant::Delta {
            return newest..newest + 1;
        }
        let is_accepted = |delivered: &Delivered| delivered.version == request.version;
        // A request that was delayed may have the version of a later response.
        let is_later = || !has_error && self.in_flight.iter().skip(newest + 1).any(is_accepted);
        match self.in_flight.iter().take(newest + 1).rposition(is_accepted) {
            Some(last) if has_error => last..last + 1,
            Some(last) => 0..last + 1,
            None if is_later() => 0..newest + 1,
            None => 0..0,
        }
    }
}
