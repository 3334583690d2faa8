//! A gRPC health server (`grpc.health.v1.Health/Check`) that serves one status.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// gRPC frames (uncompressed, length 2) with a `HealthCheckResponse`: field 1 is `SERVING`, 1, or
/// `NOT_SERVING`, 2.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 8, 1];
const NOT_SERVING: &[u8] = &[0, 0, 0, 0, 2, 8, 2];

/// Answers every request on `listener` with the current status.
pub(crate) async fn serve(
    listener: TcpListener,
    is_serving: impl Fn() -> bool + Clone + Send + Sync + 'static,
) {
    while let Ok((stream, _)) = listener.accept().await {
        // As gRPC servers do: otherwise the answer, which has several frames, may wait for a delayed
        // acknowledgement.
        let _ = stream.set_nodelay(true);
        let is_serving = is_serving.clone();
        tokio::spawn(async move {
            let service = service_fn(move |_: Request<Incoming>| {
                let message = if is_serving() { SERVING } else { NOT_SERVING };
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                let frames = [Frame::data(Bytes::from_static(message)), Frame::trailers(trailers)];
                let mut response =
                    Response::new(StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>))));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                async move { Ok::<_, Infallible>(response) }
            });
            let builder = http2::Builder::new(TokioExecutor::new());
            // Errors of a connection are caused by the client, which shows them.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
