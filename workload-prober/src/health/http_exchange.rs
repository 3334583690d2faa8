//! One HTTP/1.1 or HTTP/2 request on a new connection. Errors are described in fixed words, because
//! the text of a library error may contain bytes from the application.

use std::error::Error;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use hyper::body::{Body, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::io::InspectReader;
use workload_health::{HealthReason, Unhealthy};

/// Size limit of the response headers in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Limit of the number of response headers. hyper allocates 64 bytes for each before it reads any; with
/// more, glibc would return that memory to the kernel after each probe.
const MAX_HEADERS: usize = 1024;
/// Limit of all bytes that are read of an HTTP/1.1 response: interim (1xx) responses, headers, and
/// the part of the body that arrives with them. hyper skips interim responses without a limit.
const MAX_READ_BYTES: usize = 2 * MAX_HEADER_BYTES;

/// A connection on which nothing has been sent yet.
pub(super) trait IoStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> IoStream for T {}

/// Sends `request` over HTTP/1.1 and calls `read` once the response headers have arrived. Then the
/// connection is closed.
pub(super) async fn http1<S: IoStream, B, T>(
    stream: S,
    request: Request<B>,
    read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, Unhealthy>,
) -> Result<T, Unhealthy>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEADER_BYTES).max_header_size(MAX_HEADER_BYTES).max_headers(MAX_HEADERS);
    let limit = Arc::new(Notify::new());
    let (exceeded, mut left) = (limit.clone(), MAX_READ_BYTES);
    let stream = InspectReader::new(stream, move |bytes: &[u8]| {
        left = left.saturating_sub(bytes.len());
        if left == 0 {
            exceeded.notify_one();
        }
    });
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(to_unhealthy)?;
    let response = async move { read(sender.send_request(request).await.map_err(to_unhealthy)?).await };
    tokio::select! {
        biased;
        result = drive(connection, response) => result,
        () = limit.notified() => Err(headers_too_large()),
    }
}

/// Sends `request` over HTTP/2, otherwise as [`http1()`].
pub(super) async fn http2<S: IoStream, B, T>(
    stream: S,
    request: Request<B>,
    read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, Unhealthy>,
) -> Result<T, Unhealthy>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let tasks = Tasks::default();
    let mut builder = http2::Builder::new(tasks.clone());
    builder.max_header_list_size(MAX_HEADER_BYTES as u32);
    let _end = AbortOnDrop(tasks);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(to_unhealthy)?;
    let response = async move { read(sender.send_request(request).await.map_err(to_unhealthy)?).await };
    drive(connection, response).await
}

/// Returns the response of a connection that is driven here instead of in its own task, so that the
/// socket is closed as soon as this function returns.
async fn drive<T>(connection: impl Future, response: impl Future<Output = T>) -> T {
    let mut response = pin!(response);
    tokio::select! {
        biased;
        response = &mut response => response,
        _ = connection => response.await,
    }
}

/// Tasks of an HTTP/2 connection. They would otherwise outlive the connection until the peer closes
/// it.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.lock().expect("nothing panics while it holds this lock").spawn(task);
    }
}

struct AbortOnDrop(Tasks);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.0.lock().expect("nothing panics while it holds this lock").abort_all();
    }
}

/// Converts an error on an open connection to a probe failure.
#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
pub(super) fn to_unhealthy(error: hyper::Error) -> Unhealthy {
    if let Some(error) = tls_error(&error) {
        return super::tls::to_unhealthy(&error);
    }
    if error.is_parse_too_large() {
        return headers_too_large();
    }
    if error.is_parse() {
        return Unhealthy::new(HealthReason::BadResponse, "not a valid HTTP response");
    }
    incomplete_response()
}

fn headers_too_large() -> Unhealthy {
    Unhealthy::new(HealthReason::BadResponse, "more than 64 KiB of headers, or more than 1024 headers")
}

/// The connection was established but closed before the response was complete.
pub(super) fn incomplete_response() -> Unhealthy {
    Unhealthy::new(HealthReason::BadResponse, "the connection closed before the response was complete")
}

/// Returns the TLS error, if any. With TLS 1.3 the alert about a missing client certificate arrives
/// after the handshake.
fn tls_error(error: &hyper::Error) -> Option<rustls::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        let found = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        if let Some(error) = found.and_then(|error| error.downcast_ref::<rustls::Error>()) {
            return Some(error.clone());
        }
        source = error.source();
    }
    None
}

#[cfg(test)]
mod tests;
