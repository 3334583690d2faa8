//! One context of a VM: a root context, or an HTTP stream with its headers, its body and its
//! result.

use std::collections::BTreeMap;

use crate::transcript::Headers;

/// A local reply of the filter, as Envoy builds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalReply {
    pub status: u32,
    /// The headers that the filter added; Envoy adds `:status`, and length and type of a body.
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl LocalReply {
    /// Returns all headers as Envoy's other filters see them (`Utility::prepareLocalReply`).
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

/// The response to a callout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalloutAnswer {
    /// Includes `:status`.
    pub headers: Headers,
    /// The whole body, because callouts are buffered.
    pub body: Vec<u8>,
    /// Empty for none. The map does not exist then, and reading it returns BadArgument.
    pub trailers: Headers,
}

/// A root context, or the context of an HTTP stream.
#[derive(Debug, Default)]
pub struct Context {
    /// The request headers, as the filter left them.
    pub request_headers: Headers,
    /// The response headers, as the filter left them and sent downstream. Empty before the
    /// response.
    pub response_headers: Headers,
    /// The response body sent downstream, with all chunks joined.
    pub sent_body: Vec<u8>,
    /// The filter's local reply, if it was sent downstream.
    pub local_reply: Option<LocalReply>,
    /// Whether the stream was reset, which breaks the client's connection.
    pub reset: bool,
    /// Whether the response headers were sent downstream, after which no local reply is possible.
    pub response_started: bool,

    /// The ID of its root context; a root context has its own ID.
    pub(super) root: u32,
    /// Header maps exist during their callback, and afterwards while the filter pauses there.
    pub(super) request_open: bool,
    pub(super) response_open: bool,
    pub(super) response_seen: bool,
    /// The chunk of the current body callback.
    pub(super) chunk: Option<Vec<u8>>,
    pub(super) properties: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Set while a root context is created and configured.
    pub(super) plugin_configuration: Option<Vec<u8>>,
    /// Set on a root context during `proxy_on_http_call_response`.
    pub(super) callout: Option<CalloutAnswer>,
}

impl Context {
    /// Returns the status sent downstream, for example `"200"`; `None` before the response.
    pub fn status(&self) -> Option<String> {
        let (_, status) = self.response_headers.iter().find(|(name, _)| name == b":status")?;
        Some(String::from_utf8_lossy(status).into_owned())
    }

    pub(super) fn ended(&self) -> bool {
        self.reset || self.local_reply.is_some()
    }
}
