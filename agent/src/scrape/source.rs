//! Scrapes one source of the merged metrics in a separate task, which pauses while the writer is
//! busy.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::CHUNKS;
use super::families::FamilyLimit;
use super::line::Format;
use super::turns::{Turn, Turns};
use crate::address::HttpUrl;
use crate::http_client::{self, RequestFailure};

const ACCEPT_TEXT: &str = "text/plain;version=0.0.4,*/*;q=0.1";
const CONNECT: Duration = Duration::from_secs(1);

pub type ScrapeResult = Result<(), RequestFailure>;

/// Part of a response. The format comes first.
pub(super) enum Chunk {
    Format(Format),
    Data(Bytes),
}

pub(super) struct Source {
    /// Value of the label `source`: `envoy` or `application`.
    pub(super) name: &'static str,
    /// Port of the target, possibly with a path; empty for Envoy. It is escaped for use in a label.
    pub(super) target: String,
    pub(super) limit: FamilyLimit,
    pub(super) chunks: mpsc::Receiver<Chunk>,
    /// Task that scrapes, with the result and its duration. It ends after `chunks`.
    pub(super) task: AbortOnDropHandle<(ScrapeResult, Duration)>,
}

pub(super) struct ScrapeRequest {
    pub(super) url: HttpUrl,
    pub(super) limit: usize,
    pub(super) deadline: Instant,
    /// Turns that the scrape of this source has to wait for.
    pub(super) turns: Option<Arc<Turns>>,
}

impl Source {
    pub(super) fn spawn(
        name: &'static str,
        target: String,
        limit: FamilyLimit,
        request: ScrapeRequest,
    ) -> Self {
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let task = tokio::spawn(async move {
            let started = Instant::now();
            let result = timeout_at(request.deadline, read(&request, &sender)).await;
            (result.unwrap_or(Err(RequestFailure::Timeout)), started.elapsed())
        });
        Self { name, target, limit, chunks, task: AbortOnDropHandle::new(task) }
    }
}

async fn read(scrape: &ScrapeRequest, sender: &mpsc::Sender<Chunk>) -> ScrapeResult {
    let mut turn = match &scrape.turns {
        Some(turns) => Some(turns.next().await),
        None => None,
    };
    let connect = (Instant::now() + CONNECT).min(scrape.deadline);
    let connection = match timeout_at(connect, http_client::connect(&scrape.url.endpoint)).await {
        Ok(connection) => connection.map_err(|_| RequestFailure::Refused)?,
        Err(_) => return Err(RequestFailure::Timeout),
    };
    let mut request = http_client::request(Method::GET, &scrape.url.authority, &scrape.url.path);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(ACCEPT_TEXT));
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let limit = scrape.limit;
    connection.send(request, async |response| forward(response, limit, sender, turn.as_mut()).await).await
}

async fn forward(
    response: hyper::Response<Incoming>,
    limit: usize,
    sender: &mpsc::Sender<Chunk>,
    mut turn: Option<&mut Turn<'_>>,
) -> ScrapeResult {
    if response.status() != StatusCode::OK {
        return Err(RequestFailure::BadStatus);
    }
    let header = |name| response.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    if header(CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(RequestFailure::BadBody);
    }
    let format = Format::of(header(CONTENT_TYPE)).ok_or(RequestFailure::BadBody)?;
    let closed = |_| RequestFailure::BadBody;
    sender.send(Chunk::Format(format)).await.map_err(closed)?;
    let mut body = response.into_body();
    let mut remaining = limit;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        remaining = remaining.checked_sub(data.len()).ok_or(RequestFailure::TooLarge)?;
        let sent = sender.send(Chunk::Data(data));
        let sent = match &mut turn {
            Some(turn) => turn.wait_for_client(sent).await?,
            None => sent.await,
        };
        sent.map_err(closed)?;
    }
    Ok(())
}
