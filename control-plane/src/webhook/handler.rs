//! Handles one request to port 15017: limits, reading of the body, review, and the response.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::error;

use crate::webhook::json_values;
use crate::webhook::metrics::Metrics;
use crate::webhook::review::{self, Reviewed};
use crate::webhook::review_log::ReviewLog;
use injector::settings::Settings;
use pacing::Full;
use pacing::source::Source;
use serving::http_server::{HttpRequest, Response, json, not_allowed, text};
use serving::shared_pool::{SharedPool, Slot};
use serving::source_permits::SourcePermits;

pub(super) const PATH: &str = "/inject";
/// Maximum size of a body in bytes. The API server itself accepts 3 MiB from its clients.
const BODY_LIMIT: usize = 8 << 20;
/// Maximum number of JSON values in a body. Each needs up to 500 bytes during a review. The API
/// server stores no Pod of more than 1.5 MiB, which has fewer.
const VALUES_LIMIT: usize = 100_000;
/// Timeout from a complete header section to a complete body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Concurrent reviews of one source.
const CONCURRENT_REVIEWS: usize = 4;
/// How long a request whose body is complete waits for other reviews of its source.
const WAIT: Duration = Duration::from_secs(2);
/// Memory for bodies in bytes, shared by all requests. When it is exhausted, the source that holds the
/// most loses its oldest body that is not under review.
const BODY_MEMORY: usize = 24 << 20;
/// Part of it that only the API server gets, if it is known.
const API_SERVER_BODY_MEMORY: usize = 16 << 20;
/// Bodies of at least this size are reviewed one at a time outside of the worker threads.
const LARGE: usize = 64 << 10;

/// Handler of review requests.
#[derive(Clone)]
pub struct Handler {
    settings: watch::Receiver<Arc<Settings>>,
    metrics: Arc<Metrics>,
    log: Arc<ReviewLog>,
    /// What all clients share.
    shared: Share,
    /// What the API server has, if it is known.
    api_server: Share,
}

/// What a group of clients may use at a time.
#[derive(Clone)]
struct Share {
    source_permits: SourcePermits,
    body_memory: SharedPool,
    /// Bodies of at least this size are reviewed one at a time.
    single: usize,
    turn: Arc<Semaphore>,
}

impl Share {
    fn new(memory: usize, single: usize) -> Self {
        Self {
            source_permits: SourcePermits::new(CONCURRENT_REVIEWS),
            body_memory: SharedPool::new(memory, usize::MAX),
            single,
            turn: Arc::new(Semaphore::new(1)),
        }
    }
}

/// A request that is answered with an HTTP error.
#[derive(Debug)]
struct HttpError(StatusCode, String);

impl Handler {
    /// Creates a handler; the settings may be replaced while it runs. If the API server is known,
    /// reviews of other clients run one at a time, so that they delay its own little, however many
    /// addresses those clients have.
    pub fn new(
        settings: watch::Receiver<Arc<Settings>>,
        metrics: Arc<Metrics>,
        is_api_server_known: bool,
    ) -> Self {
        let shared = match is_api_server_known {
            true => Share::new(BODY_MEMORY - API_SERVER_BODY_MEMORY, 0),
            false => Share::new(BODY_MEMORY, LARGE),
        };
        let api_server = Share::new(API_SERVER_BODY_MEMORY, LARGE);
        Self { settings, metrics, log: Arc::default(), shared, api_server }
    }

    pub async fn answer(self, request: HttpRequest) -> Response {
        let mut response = match self.review(request).await {
            Ok(body) => return json(StatusCode::OK, Bytes::from(body)),
            Err(HttpError(StatusCode::METHOD_NOT_ALLOWED, _)) => not_allowed("POST"),
            Err(HttpError(status, line)) => text(status, line + "\n"),
        };
        self.metrics.refused(response.status().as_u16());
        // An unread rest of the body is discarded with the connection.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }

    async fn review(&self, request: HttpRequest) -> Result<Vec<u8>, HttpError> {
        if request.path() != PATH {
            return http_error(StatusCode::NOT_FOUND, "not found");
        }
        if request.method != Method::POST {
            return http_error(StatusCode::METHOD_NOT_ALLOWED, "");
        }
        is_json(&request.headers)?;
        // The declared length, if there is one.
        if request.body.size_hint().lower() > BODY_LIMIT as u64 {
            return http_error(StatusCode::PAYLOAD_TOO_LARGE, "body: more than 8 MiB");
        }
        let HttpRequest { peer, slot, is_trusted, body, headers, uri, .. } = request;
        // Both are parts of the connection's buffer, and hyper allocates a second one while they exist.
        drop((headers, uri));
        let source = peer.source();
        let share = if is_trusted { &self.api_server } else { &self.shared };
        let memory = share.body_memory.open(source);
        // A client that does not send its body must not keep a slot that others need.
        slot.set_idle(Duration::ZERO);
        let chunks = tokio::select! {
            chunks = read(body, &memory) => chunks?,
            () = memory.evicted() => return Err(busy()),
        };
        slot.set_busy();
        let length: usize = chunks.iter().map(Bytes::len).sum();
        if length == 0 {
            return http_error(StatusCode::BAD_REQUEST, "body: must be an AdmissionReview");
        }
        let permits = tokio::select! {
            permits = share.permits(source, length) => permits?,
            () = memory.evicted() => return Err(busy()),
        };
        if !memory.set_busy() {
            return Err(busy());
        }
        let started = Instant::now();
        let settings = self.settings.borrow().clone();
        let review = move || {
            // The work continues if the client disconnects, and so must what limits it.
            let _held = (permits, memory);
            let body = chunks.concat();
            drop(chunks);
            if json_values::count(&body) > VALUES_LIMIT {
                return http_error(StatusCode::PAYLOAD_TOO_LARGE, "body: more than 100000 JSON values");
            }
            catch_panic(&body, || review::review(&body, &settings))
        };
        let reviewed = if length < LARGE {
            review()?
        } else {
            tokio::task::spawn_blocking(review).await.map_err(|_| internal_error())??
        };
        self.metrics.reviewed(&reviewed, started.elapsed().as_secs_f64());
        self.log.write(&reviewed, source.filter(|_| !is_trusted));
        Ok(reviewed.body)
    }
}

impl Share {
    /// Waits until a body of this length may be reviewed; the permits are held during the review.
    async fn permits(
        &self,
        source: Option<Source>,
        length: usize,
    ) -> Result<[Option<OwnedSemaphorePermit>; 2], HttpError> {
        let Ok(permit) = timeout(WAIT, self.source_permits.of(source).acquire_owned()).await else {
            return Err(busy());
        };
        let turn = if length < self.single { None } else { self.turn.clone().acquire_owned().await.ok() };
        // Reviews of other sources that are ready run first.
        yield_now().await;
        Ok([permit.ok(), turn])
    }
}

/// Reads a body. The chunks are joined only when all are there, so that an incomplete body costs no
/// more than its bytes.
async fn read(mut body: Incoming, memory: &Slot) -> Result<Vec<Bytes>, HttpError> {
    let deadline = Instant::now() + BODY_TIMEOUT;
    let (mut chunks, mut length) = (Vec::new(), 0);
    while !body.is_end_stream() {
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return http_error(StatusCode::REQUEST_TIMEOUT, "body: incomplete after 10 s"),
            Ok(None) => break,
            Ok(Some(Err(_))) => return http_error(StatusCode::BAD_REQUEST, "body: read failed"),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > BODY_LIMIT {
            return http_error(StatusCode::PAYLOAD_TOO_LARGE, "body: more than 8 MiB");
        }
        memory.grow(data.len()).map_err(|Full| busy())?;
        // A copy: the chunk is part of the connection's buffer, which is larger.
        chunks.push(Bytes::copy_from_slice(&data));
    }
    Ok(chunks)
}

fn busy() -> HttpError {
    HttpError(StatusCode::SERVICE_UNAVAILABLE, "busy".to_owned())
}

fn http_error<T>(status: StatusCode, line: &str) -> Result<T, HttpError> {
    Err(HttpError(status, line.to_owned()))
}

fn internal_error() -> HttpError {
    HttpError(StatusCode::INTERNAL_SERVER_ERROR, "internal error, see the log".to_owned())
}

fn is_json(headers: &HeaderMap) -> Result<(), HttpError> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    if !content_type.eq_ignore_ascii_case("application/json") || headers.contains_key(CONTENT_ENCODING) {
        return http_error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-type: must be application/json, without an encoding",
        );
    }
    Ok(())
}

/// Limits a panic to the request that caused it.
fn catch_panic(
    body: &[u8],
    review: impl FnOnce() -> Result<Reviewed, review::InvalidReview>,
) -> Result<Reviewed, HttpError> {
    match catch_unwind(AssertUnwindSafe(review)) {
        Ok(Ok(reviewed)) => Ok(reviewed),
        Ok(Err(bad)) => Err(HttpError(StatusCode::BAD_REQUEST, bad.to_string())),
        Err(_) => {
            error!(uid = ?review::uid(body), "review panicked, which is a bug in app-health");
            Err(internal_error())
        }
    }
}

#[cfg(test)]
mod tests;
