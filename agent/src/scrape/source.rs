//! Scrapes one source of the merged metrics in a separate task, which pauses while the writer is
//! busy.

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
use crate::address::HttpUrl;
use crate::http_client;
use crate::scrape::families::Room;
use crate::scrape::format::Format;
use crate::scrape::merge::Cut;

/// Timeout for connecting to a source.
const CONNECT: Duration = Duration::from_secs(1);

/// Outcome of scraping a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Refused,
    Timeout,
    BadStatus,
    BadBody,
    TooLarge,
}

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::BadStatus => "bad_status",
            Self::BadBody => "bad_body",
            Self::TooLarge => "too_large",
        }
    }
}

impl From<hyper::Error> for Outcome {
    fn from(_: hyper::Error) -> Self {
        Self::BadBody
    }
}

impl From<Cut> for Outcome {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::NoExposition => Self::BadBody,
            Cut::TooManyFamilies => Self::TooLarge,
        }
    }
}

/// Message of the scraping task. A format may come first, then data, and the outcome at the end.
pub(super) enum Piece {
    Begins(Format),
    Data(Bytes),
    Ends(Outcome, Duration),
}

/// Source that is being scraped.
pub(super) struct Source {
    pub(super) part: &'static str,
    /// Port of the target, possibly with a path; empty for Envoy. It is escaped for use in a label.
    pub(super) target: String,
    pub(super) pieces: mpsc::Receiver<Piece>,
    /// Number of families that the source may add.
    pub(super) room: Room,
    _asking: AbortOnDropHandle<()>,
}

/// Request to a source.
pub(super) struct Question {
    pub(super) url: HttpUrl,
    pub(super) accept: &'static str,
    /// Maximum size of the body in bytes.
    pub(super) limit: usize,
    pub(super) room: Room,
    pub(super) deadline: Instant,
}

impl Source {
    pub(super) fn ask(part: &'static str, target: String, question: Question) -> Self {
        let (sender, pieces) = mpsc::channel(CHUNKS);
        let room = question.room;
        let asking = tokio::spawn(async move {
            let began = Instant::now();
            let outcome = match timeout_at(question.deadline, read(&question, &sender)).await {
                Ok(Ok(())) => Outcome::Ok,
                Ok(Err(outcome)) => outcome,
                Err(_) => Outcome::Timeout,
            };
            // The writer may have ended already.
            let _ = sender.send(Piece::Ends(outcome, began.elapsed())).await;
        });
        Self { part, target, pieces, room, _asking: AbortOnDropHandle::new(asking) }
    }
}

async fn read(question: &Question, sender: &mpsc::Sender<Piece>) -> Result<(), Outcome> {
    let connect = (Instant::now() + CONNECT).min(question.deadline);
    let connection = match timeout_at(connect, http_client::connect(&question.url.endpoint)).await {
        Ok(connection) => connection.map_err(|_| Outcome::Refused)?,
        Err(_) => return Err(Outcome::Timeout),
    };
    let mut request = http_client::request(Method::GET, &question.url.authority, &question.url.path);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(question.accept));
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let limit = question.limit;
    connection.send(request, async |response| pass_on(response, limit, sender).await).await
}

async fn pass_on(
    response: hyper::Response<Incoming>,
    limit: usize,
    sender: &mpsc::Sender<Piece>,
) -> Result<(), Outcome> {
    if response.status() != StatusCode::OK {
        return Err(Outcome::BadStatus);
    }
    let header = |name| response.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    if header(CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(Outcome::BadBody);
    }
    let format = Format::of(header(CONTENT_TYPE)).ok_or(Outcome::BadBody)?;
    let gone = |_| Outcome::BadBody;
    sender.send(Piece::Begins(format)).await.map_err(gone)?;
    let mut body = response.into_body();
    let mut room = limit;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        room = room.checked_sub(data.len()).ok_or(Outcome::TooLarge)?;
        sender.send(Piece::Data(data)).await.map_err(gone)?;
    }
    Ok(())
}
