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

use super::families::{FamilyLimit, Owner};
use super::gunzip::Gunzip;
use super::line::Format;
use super::merge::SourceState;
use super::redirect::{self, MAX_REQUESTS};
use super::turns::{Turn, Turns};
use super::{CHUNKS, Reader, ScrapeResult};
use address::RequestFailure;
use address::{Endpoint, HttpUrl};

const ACCEPT_TEXT: &str = "text/plain;version=0.0.4,*/*;q=0.1";
/// Asks for names in quotes, as the scraper does.
const ACCEPT_QUOTED_NAMES: &str =
    "text/plain;version=1.0.0;escaping=allow-utf-8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
const CONNECT: Duration = Duration::from_secs(1);

/// Part of a response. The format comes first.
pub(super) enum Chunk {
    Format(Format),
    Data(Bytes),
}

pub(super) struct Source {
    pub(super) chunks: mpsc::Receiver<Chunk>,
    pub(super) scrape: SourceScrape,
}

/// Scrape of a source in progress.
pub(super) struct SourceScrape {
    pub(super) source: SourceName,
    /// Task that scrapes, with the result and its duration. It ends after the chunks.
    task: AbortOnDropHandle<(ScrapeResult, Duration)>,
}

#[derive(Debug, Clone)]
pub(super) struct SourceName {
    /// Value of the label `source`: `envoy` or `application`.
    pub(super) name: &'static str,
    /// Port of the target, possibly with a path; empty for Envoy. It is escaped for use in a label.
    pub(super) target: String,
    pub(super) owner: Owner,
    pub(super) families: FamilyLimit,
}

pub(super) struct ScrapeRequest {
    pub(super) url: HttpUrl,
    pub(super) limit: usize,
    pub(super) deadline: Instant,
    pub(super) reader: Reader,
    /// Turns that the scrape of this source has to wait for.
    pub(super) turns: Option<Arc<Turns>>,
}

impl Source {
    pub(super) fn spawn(source: SourceName, request: ScrapeRequest) -> Self {
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let task = tokio::spawn(async move {
            let started = Instant::now();
            let result = timeout_at(request.deadline, read(&request, &sender)).await;
            (result.unwrap_or(Err(RequestFailure::Timeout)), started.elapsed())
        });
        Self { chunks, scrape: SourceScrape { source, task: AbortOnDropHandle::new(task) } }
    }
}

impl SourceScrape {
    /// Returns the state in which the source is merged.
    pub(super) fn state(&self, format: Format) -> SourceState {
        let SourceName { target, owner, families, .. } = &self.source;
        let label = (*owner == Owner::Labelled).then(|| target.clone());
        SourceState::new(format, *families, *owner, label)
    }

    /// Returns the result and its duration, after the last chunk.
    pub(super) async fn result(&mut self) -> (ScrapeResult, Duration) {
        // A task that panicked has no duration.
        (&mut self.task).await.unwrap_or((Err(RequestFailure::BadBody), Duration::ZERO))
    }
}

async fn read(scrape: &ScrapeRequest, sender: &mpsc::Sender<Chunk>) -> ScrapeResult {
    let mut turn = match &scrape.turns {
        Some(turns) => Some(turns.next().await),
        None => None,
    };
    let mut url = scrape.url.clone();
    for _ in 0..MAX_REQUESTS {
        match request(scrape, &url, sender, turn.as_mut()).await? {
            None => return Ok(()),
            Some(path) => url.path = path,
        }
    }
    Err(RequestFailure::BadRedirect)
}

/// Sends one request and forwards its response. `Some` is the path of a redirect.
async fn request(
    scrape: &ScrapeRequest,
    url: &HttpUrl,
    sender: &mpsc::Sender<Chunk>,
    turn: Option<&mut Turn<'_>>,
) -> Result<Option<String>, RequestFailure> {
    let connect = (Instant::now() + CONNECT).min(scrape.deadline);
    let connection = match timeout_at(connect, http_client::connect(&url.endpoint)).await {
        Ok(connection) => connection.map_err(|_| RequestFailure::Refused)?,
        Err(_) => return Err(RequestFailure::Timeout),
    };
    let accept = if scrape.reader.accepts_quoted_names { ACCEPT_QUOTED_NAMES } else { ACCEPT_TEXT };
    let mut request = http_client::request(Method::GET, &url.authority, &url.path);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let read = async |response: hyper::Response<Incoming>| {
        if let Endpoint::Localhost(port) = url.endpoint
            && let Some(path) = redirect::next(url, port, response.status(), response.headers())?
        {
            return Ok(Some(path));
        }
        forward(response, scrape.limit, sender, turn).await.map(|()| None)
    };
    connection.send(request, read).await
}

async fn forward(
    response: hyper::Response<Incoming>,
    limit: usize,
    sender: &mpsc::Sender<Chunk>,
    turn: Option<&mut Turn<'_>>,
) -> ScrapeResult {
    if response.status() != StatusCode::OK {
        return Err(RequestFailure::BadStatus);
    }
    let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let format = Format::of(header(CONTENT_TYPE)).ok_or(RequestFailure::BadBody)?;
    // Like Prometheus, any other encoding is taken for none: some servers name a character set here.
    let encoding = header(CONTENT_ENCODING).unwrap_or_default().trim();
    let is_gzip = ["gzip", "x-gzip"].iter().any(|gzip| encoding.eq_ignore_ascii_case(gzip));
    let mut gunzip = is_gzip.then(Gunzip::new);
    let mut sink = Sink { sender, turn, remaining: limit };
    sink.send(Chunk::Format(format)).await?;
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| RequestFailure::BadBody)?.into_data() else { continue };
        match &mut gunzip {
            None => sink.data(data).await?,
            Some(gunzip) => {
                gunzip.push(data);
                sink.decompressed(gunzip).await?;
            }
        }
    }
    if let Some(gunzip) = &mut gunzip {
        gunzip.end();
        sink.decompressed(gunzip).await?;
    }
    Ok(())
}

/// Receiver of the body of a source.
struct Sink<'a, 'b> {
    sender: &'a mpsc::Sender<Chunk>,
    turn: Option<&'a mut Turn<'b>>,
    /// Number of bytes that the body may still have, after decompression.
    remaining: usize,
}

impl Sink<'_, '_> {
    async fn decompressed(&mut self, gunzip: &mut Gunzip) -> ScrapeResult {
        while let Some(data) = gunzip.next().map_err(|_| RequestFailure::BadBody)? {
            self.data(data).await?;
        }
        Ok(())
    }

    async fn data(&mut self, data: Bytes) -> ScrapeResult {
        self.remaining = self.remaining.checked_sub(data.len()).ok_or(RequestFailure::TooLarge)?;
        self.send(Chunk::Data(data)).await
    }

    async fn send(&mut self, chunk: Chunk) -> ScrapeResult {
        let sent = self.sender.send(chunk);
        let sent = match &mut self.turn {
            Some(turn) => turn.wait_for_client(sent).await?,
            None => sent.await,
        };
        sent.map_err(|_| RequestFailure::BadBody)
    }
}
