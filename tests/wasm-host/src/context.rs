//! One context of a VM: a root, or an HTTP stream with its heads, its body and what became of it.

use std::collections::BTreeMap;

use crate::transcript::Headers;

/// A reply of the filter's own, as Envoy builds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalReply {
    /// HTTP status.
    pub status: u32,
    /// What the filter added; Envoy adds `:status`, and length and type of a body.
    pub headers: Headers,
    /// Empty for none.
    pub body: Vec<u8>,
}

impl LocalReply {
    /// The whole head, as Envoy's other filters see it (`Utility::prepareLocalReply`).
    pub fn head(&self) -> Headers {
        let mut head = vec![(b":status".to_vec(), self.status.to_string().into_bytes())];
        head.extend(self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
        if !self.body.is_empty() {
            head.push((b"content-length".to_vec(), self.body.len().to_string().into_bytes()));
            if !head.iter().any(|(name, _)| name == b"content-type") {
                head.push((b"content-type".to_vec(), b"text/plain".to_vec()));
            }
        }
        head
    }
}

/// The answer to a callout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalloutAnswer {
    /// With `:status`.
    pub headers: Headers,
    /// The whole body: callouts are buffered.
    pub body: Vec<u8>,
    /// Empty for none; then the map does not exist, and reading it is answered BadArgument.
    pub trailers: Headers,
}

/// A root context, or the context of an HTTP stream.
#[derive(Debug, Default)]
pub struct Context {
    /// The request head, as the filter left it.
    pub request_headers: Headers,
    /// The response head, as the filter left it: what goes downstream. Empty before there is one.
    pub response_headers: Headers,
    /// The response body that went downstream, all chunks in one.
    pub sent_body: Vec<u8>,
    /// The filter's own reply, if that is what went downstream.
    pub local_reply: Option<LocalReply>,
    /// The stream was reset: the caller's connection breaks.
    pub reset: bool,
    /// The response head went downstream: it is too late for a reply.
    pub response_started: bool,

    /// Its root; a root's own id for a root.
    pub(super) root: u32,
    /// Maps exist during their callback, and on while the filter pauses there.
    pub(super) request_open: bool,
    pub(super) response_open: bool,
    pub(super) response_seen: bool,
    /// The chunk that the body callback looks at.
    pub(super) chunk: Option<Vec<u8>>,
    pub(super) access_log: bool,
    pub(super) properties: BTreeMap<Vec<u8>, Vec<u8>>,
    /// While a root is created and configured.
    pub(super) plugin_configuration: Option<Vec<u8>>,
    /// On a root, while the answer to a callout is handed over.
    pub(super) callout: Option<CalloutAnswer>,
}

impl Context {
    /// The status that went downstream: `"200"`; None before there is a response.
    pub fn status(&self) -> Option<String> {
        let (_, status) = self.response_headers.iter().find(|(name, _)| name == b":status")?;
        Some(String::from_utf8_lossy(status).into_owned())
    }

    pub(super) fn ended(&self) -> bool {
        self.reset || self.local_reply.is_some()
    }
}
