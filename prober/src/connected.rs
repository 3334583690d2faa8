//! Requests on connections that the caller has opened, for probes with other targets and redirects than
//! those of kubelet.

use probe::{Reason, Request};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::http1;
#[cfg(feature = "tls")]
use crate::http2::get;
#[cfg(feature = "tls")]
pub use crate::http2::get::Unanswered;
pub use crate::http2::grpc::{Call, Checked, Failed, check};

/// How often a request is sent that the application refuses to process. Go's client does not count.
pub const ATTEMPTS: u32 = 50;

/// The head of a final response, as far as a probe needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// The first `Location`.
    pub location: Option<Vec<u8>>,
}

/// Sends a request over HTTP/1.1 and reads the head of the final response. `user_agent` counts if the request
/// has none.
///
/// # Errors
/// [`Reason::Protocol`] for a response that Go's client rejects, and [`Reason::Closed`] for one that breaks off.
pub async fn http1_head<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    request: &Request,
    user_agent: &[u8],
) -> Result<Head, Reason> {
    let response = http1::send(stream, request, user_agent).await?;
    Ok(Head { status: response.status, location: response.location })
}

/// Like [`http1_head`], over HTTP/2, which is only spoken over TLS.
///
/// # Errors
/// [`Unanswered::Unprocessed`] if the request may be sent again on another connection.
#[cfg(feature = "tls")]
pub async fn http2_head<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    request: &Request,
    user_agent: &[u8],
) -> Result<Head, Unanswered> {
    let response = get::send(stream, request, user_agent).await?;
    Ok(Head { status: response.status, location: response.location })
}
