//! Handles one request to port 15017: limits, reading of the body, review, and the response.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{error, info};

use crate::webhook::metrics::Metrics;
use crate::webhook::review::{self, Reviewed};
use injector::settings::Settings;
use injector::{Outcome, ProbeResult};
use serving::http_server::{HttpRequest, Response, json, not_allowed, text};

const PATH: &str = "/inject";
/// Maximum size of a body in bytes. The API server itself accepts 3 MiB from its clients.
const BODY_LIMIT: usize = 8 << 20;
/// Timeout from a complete header section to a complete body.
const BODY: Duration = Duration::from_secs(10);
/// Maximum number of concurrent requests.
const IN_WORK: usize = 64;
/// How long a further request waits for a permit, and a body for memory.
const WAIT: Duration = Duration::from_secs(2);
/// Memory for bodies in KiB, shared by all requests.
const ROOM: u32 = 10 << 10;
/// Bodies of at least this size are reviewed one at a time outside of the worker threads.
const LARGE: usize = 256 << 10;

/// Handler of review requests.
#[derive(Clone)]
pub struct Exchange {
    settings: watch::Receiver<Arc<Settings>>,
    metrics: Arc<Metrics>,
    in_work: Arc<Semaphore>,
    room: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// A request that is answered with an HTTP error.
#[derive(Debug)]
struct Refusal(StatusCode, String);

/// A body as it was received. Its chunks are joined only when it is complete, so that an incomplete
/// body costs no more than its bytes.
#[derive(Default)]
struct Chunks {
    length: usize,
    chunks: Vec<Bytes>,
}

fn whole(mut chunks: Vec<Bytes>) -> Bytes {
    match chunks.len() {
        1 => chunks.remove(0),
        _ => chunks.concat().into(),
    }
}

impl Exchange {
    /// Creates a handler; the settings may be replaced while it runs.
    pub fn new(settings: watch::Receiver<Arc<Settings>>, metrics: Arc<Metrics>) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { settings, metrics, in_work: places(IN_WORK), room: places(ROOM as usize), large: places(1) }
    }

    pub async fn answer(self, request: HttpRequest) -> Response {
        let response = match self.review(request).await {
            Ok(body) => return json(StatusCode::OK, Bytes::from(body)),
            Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, _)) => not_allowed("POST"),
            Err(Refusal(status, line)) => text(status, line + "\n"),
        };
        self.metrics.refused(response.status().as_u16());
        closed(response)
    }

    async fn review(&self, request: HttpRequest) -> Result<Vec<u8>, Refusal> {
        if request.path() != PATH {
            return refuse(StatusCode::NOT_FOUND, "not found");
        }
        if request.method != Method::POST {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "");
        }
        is_json(&request.headers)?;
        if declared(&request.headers) > BODY_LIMIT as u64 {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, "body: more than 8 MiB");
        }
        let Ok(Ok(_turn)) = timeout(WAIT, self.in_work.acquire()).await else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "busy");
        };
        let (Chunks { length, chunks }, _room) = self.body(request.body).await?;
        if length == 0 {
            return refuse(StatusCode::BAD_REQUEST, "body: must be an AdmissionReview");
        }
        let started = Instant::now();
        let settings = self.settings.borrow().clone();
        let review = move || {
            let body = whole(chunks);
            guarded(&body, || review::review(&body, &settings))
        };
        let reviewed = if length < LARGE {
            review()?
        } else {
            let _large = self.large.acquire().await;
            tokio::task::spawn_blocking(review).await.map_err(|_| broken())??
        };
        self.metrics.reviewed(&reviewed, started.elapsed().as_secs_f64());
        log(&reviewed);
        Ok(reviewed.body)
    }

    /// Reads a body. Its share of the memory limit is released when the permit is dropped.
    async fn body(&self, mut body: Incoming) -> Result<(Chunks, Option<OwnedSemaphorePermit>), Refusal> {
        let deadline = Instant::now() + BODY;
        let mut read = Chunks::default();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while !body.is_end_stream() {
            let frame = match timeout_at(deadline, body.frame()).await {
                Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "body: incomplete after 10 s"),
                Ok(None) => break,
                Ok(Some(Err(_))) => return refuse(StatusCode::BAD_REQUEST, "body: read failed"),
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            if read.length + data.len() > BODY_LIMIT {
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, "body: more than 8 MiB");
            }
            read.length += data.len();
            read.chunks.push(data);
            let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let wanted = read.length.div_ceil(1 << 10);
            if wanted > held {
                let more = u32::try_from(wanted - held).expect("at most 8 MiB");
                let Ok(Ok(more)) = timeout(WAIT, self.room.clone().acquire_many_owned(more)).await else {
                    return refuse(StatusCode::SERVICE_UNAVAILABLE, "busy");
                };
                match &mut room {
                    None => room = Some(more),
                    Some(room) => room.merge(more),
                }
            }
        }
        Ok((read, room))
    }
}

fn refuse<T>(status: StatusCode, line: &str) -> Result<T, Refusal> {
    Err(Refusal(status, line.to_owned()))
}

fn broken() -> Refusal {
    Refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal error, see the log".to_owned())
}

/// Closes the connection, so that an unread rest of the body is discarded.
fn closed(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    if !content_type.eq_ignore_ascii_case("application/json") || headers.contains_key(CONTENT_ENCODING) {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-type: must be application/json, without an encoding",
        );
    }
    Ok(())
}

fn declared(headers: &HeaderMap) -> u64 {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// Limits a panic to the request that caused it.
fn guarded(
    body: &[u8],
    review: impl FnOnce() -> Result<Reviewed, review::BadReview>,
) -> Result<Reviewed, Refusal> {
    match catch_unwind(AssertUnwindSafe(review)) {
        Ok(Ok(reviewed)) => Ok(reviewed),
        Ok(Err(bad)) => Err(Refusal(StatusCode::BAD_REQUEST, bad.to_string())),
        Err(_) => {
            error!(uid = ?review::uid(body), "review panicked, which is a bug in app-health");
            Err(broken())
        }
    }
}

/// Logs a line for each Pod that was changed, or could not be changed as requested.
fn log(reviewed: &Reviewed) {
    let Reviewed { outcome, namespace, name, probes, warnings, .. } = reviewed;
    if matches!(outcome, Outcome::Skipped | Outcome::Unchanged) && warnings.is_empty() {
        return;
    }
    let count = |result| probes.iter().filter(|probe| probe.result == result).count();
    let codes: Vec<&str> = warnings.iter().map(|warning| warning.code.word()).collect();
    let (rewritten, left) = (count(ProbeResult::Rewritten), count(ProbeResult::Left));
    info!(
        ?namespace,
        ?name,
        result = outcome.word(),
        rewritten,
        left,
        warnings = codes.join(","),
        "pod reviewed"
    );
}

#[cfg(test)]
mod tests;
