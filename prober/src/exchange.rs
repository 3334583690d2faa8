//! One request of an `httpGet` probe and its response, on a new connection, over the version of HTTP that
//! the application chooses.

use probe::{Reason, Request};

#[cfg(feature = "tls")]
use crate::connected::ATTEMPTS;
use crate::dial::{self, Target};
use crate::http1;
#[cfg(feature = "tls")]
use crate::http2::get::{self, Unanswered};
use crate::response::{BrokenBody, Response};
use crate::stream::Stream;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// The rest of a response.
#[derive(Debug)]
pub(crate) enum Body {
    Http1(http1::Body<Stream>),
    #[cfg(feature = "tls")]
    Http2(get::Body<Stream>),
}

impl Body {
    /// False if the head says that the body has more bytes.
    pub(crate) fn may_be_short(&self, bytes: usize) -> bool {
        match self {
            Self::Http1(body) => body.may_be_short(bytes),
            #[cfg(feature = "tls")]
            Self::Http2(body) => body.may_be_short(bytes),
        }
    }

    /// Reads to the end, but at most this many bytes.
    pub(crate) async fn read_at_most(&mut self, most: usize) -> Result<(), BrokenBody> {
        match self {
            Self::Http1(body) => body.read_at_most(most).await,
            #[cfg(feature = "tls")]
            Self::Http2(body) => body.read_at_most(most).await,
        }
    }
}

/// Sends requests of `httpGet` and `grpc` probes, which share the configuration of TLS.
#[derive(Clone, Default)]
pub struct Client {
    #[cfg(feature = "tls")]
    tls: std::sync::OnceLock<Tls>,
}

impl Client {
    #[cfg(feature = "tls")]
    pub(crate) fn tls(&self) -> &Tls {
        self.tls.get_or_init(Tls::default)
    }

    /// Sends a request and reads the head of the final response.
    pub(crate) async fn send(
        &self,
        target: Target,
        request: &Request,
        user_agent: &[u8],
    ) -> Result<Response<Body>, Reason> {
        let port = request.url.port().ok_or(Reason::Redirect)?;
        if request.url.scheme == b"https" {
            return self.send_over_tls(target, port, request, user_agent).await;
        }
        let stream = Stream::Plaintext(dial::connect(target, port).await?);
        Ok(http1::send(stream, request, user_agent).await?.map(Body::Http1))
    }

    #[cfg(not(feature = "tls"))]
    async fn send_over_tls(
        &self,
        _: Target,
        _: u16,
        _: &Request,
        _: &[u8],
    ) -> Result<Response<Body>, Reason> {
        Err(Reason::Configuration)
    }

    #[cfg(feature = "tls")]
    async fn send_over_tls(
        &self,
        target: Target,
        port: u16,
        request: &Request,
        user_agent: &[u8],
    ) -> Result<Response<Body>, Reason> {
        let tls = self.tls();
        for _ in 0..ATTEMPTS {
            let (stream, is_http2) = tls.http(dial::connect(target, port).await?, target.ip).await?;
            let stream = Stream::Tls(stream);
            if !is_http2 {
                return Ok(http1::send(stream, request, user_agent).await?.map(Body::Http1));
            }
            match get::send(stream, request, user_agent).await {
                Ok(response) => return Ok(response.map(Body::Http2)),
                Err(Unanswered::Unprocessed) => {}
                Err(Unanswered::Failed(reason)) => return Err(reason),
            }
        }
        Err(Reason::Closed)
    }
}
