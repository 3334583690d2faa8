//! A response to an HTTP request.

/// A response whose head has arrived; `B` is its body.
#[derive(Debug)]
pub(crate) struct Response<B> {
    pub(crate) status: u16,
    /// The first `Location`.
    pub(crate) location: Option<Vec<u8>>,
    pub(crate) body: B,
}

impl<B> Response<B> {
    pub(crate) fn map<C>(self, body: impl FnOnce(B) -> C) -> Response<C> {
        Response { status: self.status, location: self.location, body: body(self.body) }
    }
}

/// The body of a response broke off, so that kubelet's prober cannot tell a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenBody;
