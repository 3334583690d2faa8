//! Requests on connections that the caller has opened, for probes with other targets and redirects than
//! those of kubelet.

use probe::{Reason, Request};

use crate::http1;
#[cfg(feature = "tls")]
use crate::http2::get;
#[cfg(feature = "tls")]
pub use crate::http2::get::Unanswered;
pub use crate::http2::grpc::{Call, Checked, Failed, check};
use crate::response::Response;
pub use crate::stream::Stream;

/// How often a request is sent that the application refuses to process. Go's client does not count.
pub const ATTEMPTS: u32 = 50;

/// The head of a final response, as far as a probe needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// The first `Location`.
    pub location: Option<Vec<u8>>,
}

impl<B> From<Response<B>> for Head {
    fn from(Response { status, location, .. }: Response<B>) -> Self {
        Self { status, location }
    }
}

/// Sends a request over HTTP/1.1 and reads the head of the final response. `user_agent` counts if the request
/// has none.
///
/// # Errors
/// [`Reason::Protocol`] for a response that Go's client rejects, and [`Reason::Closed`] for one that breaks off.
pub async fn http1_head(stream: &mut Stream, request: &Request, user_agent: &[u8]) -> Result<Head, Reason> {
    Ok(http1::send(stream, request, user_agent).await?.into())
}

/// Like [`http1_head`], over HTTP/2, which is only spoken over TLS.
///
/// # Errors
/// [`Unanswered::Unprocessed`] if the request may be sent again on another connection.
#[cfg(feature = "tls")]
pub async fn http2_head(
    stream: &mut Stream,
    request: &Request,
    user_agent: &[u8],
) -> Result<Head, Unanswered> {
    Ok(get::send(stream, request, user_agent).await?.into())
}
