//! One HTTP request on a connection of its own, of any version; what went wrong is said in our words, since an error of a library may
//! hold bytes of the application.

mod bounded;

use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use hyper::body::{Body, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use workload_health::{HealthReason, Unhealthy};

use bounded::Bounded;

/// What an answer's headers may come to, in bytes.
const HEAD_BYTES: usize = 64 << 10;
/// The same in lines.
const HEAD_LINES: usize = HEAD_BYTES / 16;
/// Everything that is read of an answer: the headers, interim answers before them, and what of the body comes in one piece with them.
const READ_BYTES: usize = 2 * HEAD_BYTES;

/// A connection that nothing was sent on yet.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// Sends `request` over HTTP/1.1, and gives the answer to `read` once its headers are there. Then the connection is closed.
pub(super) async fn http1<S: Stream, B, T>(
    stream: S,
    request: Request<B>,
    read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, Unhealthy>,
) -> Result<T, Unhealthy>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES).max_header_size(HEAD_BYTES).max_headers(HEAD_LINES);
    let stream = TokioIo::new(Bounded::new(stream, READ_BYTES));
    let (mut sender, connection) = builder.handshake(stream).await.map_err(broken)?;
    let answer = async move { read(sender.send_request(request).await.map_err(broken)?).await };
    driven(connection, answer).await
}

/// The same over HTTP/2.
pub(super) async fn http2<S: Stream, B, T>(
    stream: S,
    request: Request<B>,
    read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, Unhealthy>,
) -> Result<T, Unhealthy>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    let tasks = Tasks::default();
    let mut builder = http2::Builder::new(tasks.clone());
    builder.max_header_list_size(HEAD_BYTES as u32);
    let _end = AbortOnDrop(tasks);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let answer = async move { read(sender.send_request(request).await.map_err(broken)?).await };
    driven(connection, answer).await
}

/// The answer of a connection that is driven here and not by a task of its own, so that its socket is closed in the moment in which this ends.
async fn driven<T>(connection: impl Future, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}

/// Tasks of a connection over HTTP/2, which would outlive it by the time that its peer takes to say goodbye.
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

/// What an error on an open connection means.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn broken(error: hyper::Error) -> Unhealthy {
    if let Some(error) = tls_error(&error) {
        return super::tls::failed(&error);
    }
    if error.is_parse_too_large() || is_bounded(&error) {
        return Unhealthy::new(HealthReason::BadResponse, "headers of more than 64 KiB");
    }
    if error.is_parse() {
        return Unhealthy::new(HealthReason::BadResponse, "not a valid HTTP answer");
    }
    cut_off()
}

/// The connection was there, the answer was not.
pub(super) fn cut_off() -> Unhealthy {
    Unhealthy::new(HealthReason::BadResponse, "the connection ended without a whole answer")
}

/// Whether nothing more was read because it was too much.
fn is_bounded(error: &hyper::Error) -> bool {
    error
        .source()
        .and_then(|error| error.downcast_ref::<io::Error>())
        .is_some_and(|error| error.kind() == bounded::KIND)
}

/// What TLS said, if that was it: a client certificate that is missing is told after the handshake.
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
