//! `GET /stats/prometheus` on the local port: agent, Envoy and application in one answer. All are asked at once; what comes is written
//! in order, in chunks, and nothing is kept longer than it takes to write it.

mod request;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::Metrics;
use super::families::Room;
use super::format::Format;
use super::merge::{Merge, Part};
use crate::address::{Endpoint, HttpUrl};
use crate::config::{MetricsConfig, Target};
use crate::http_server::{AnswerWithin, Body, Chunks, Response, text};
use crate::log::Repeated;
use request::{accepts_open_metrics, deadline, envoy_path};
use source::{Outcome, Piece, Question, Source};

/// How many scrapes go on at a time.
const SCRAPES: usize = 2;
/// The shortest, whatever the scraper says, and how much earlier than the scraper's own it is.
const SLACK: Duration = Duration::from_millis(500);
/// Of Envoy's part, in bytes.
const ENVOY_LIMIT: usize = 64 << 20;
/// Of an application's.
const TARGET_LIMIT: usize = 10 << 20;
/// Chunks of a part that wait: of 16 KiB at most, so 64 KiB.
const CHUNKS: usize = 4;
/// What a target is asked for.
const ACCEPT_TEXT: &str = "text/plain;version=0.0.4,*/*;q=0.1";
const ACCEPT_OPEN_METRICS: &str =
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

/// What a scrape is made of.
#[derive(Clone)]
pub struct Scraper {
    metrics: Arc<Metrics>,
    config: Arc<MetricsConfig>,
    admin: HttpUrl,
    permits: Arc<Semaphore>,
    /// By part and target.
    missing: Arc<Mutex<BTreeMap<String, Repeated>>>,
}

impl Scraper {
    /// `admin`: Envoy's admin port; the path does not matter.
    pub fn new(metrics: Arc<Metrics>, config: MetricsConfig, admin: HttpUrl) -> Self {
        Self {
            metrics,
            config: Arc::new(config),
            admin,
            permits: Arc::new(Semaphore::new(SCRAPES)),
            missing: Arc::default(),
        }
    }

    /// The agent's own metrics alone.
    pub fn own(&self) -> Response {
        let mut merge = Merge::new(Format::Text);
        let mut out = Vec::new();
        own_part(&self.metrics, &mut merge, &mut out);
        answer(Format::Text, Body::from(Bytes::from(out)))
    }

    /// All parts. Always 200 once begun; two at a time, the third is told to come back.
    pub async fn merged(&self, headers: &HeaderMap, query: &str) -> Response {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "two scrapes are going on\n");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return response;
        };
        let within = deadline(headers);
        let deadline = Instant::now() + within;
        let may_be_open =
            !self.config.envoy && self.config.targets.len() == 1 && accepts_open_metrics(headers);
        let mut sources = self.ask(query, deadline, may_be_open);
        let mut format = Format::Text;
        let mut first = None;
        if may_be_open && let Some(source) = sources.first_mut() {
            first = source.pieces.recv().await;
            if let Some(Piece::Begins(begins)) = &first {
                format = *begins;
            }
        }
        let (chunks, body) = Body::chunks(CHUNKS);
        let gone = chunks.clone();
        let write = self.clone().write(format, sources, first, chunks);
        tokio::spawn(async move {
            let _permit = permit;
            // A caller that has gone frees its place at once, whatever a part may be doing.
            tokio::select! {
                () = write => {}
                () = gone.closed() => debug!("the scraper has gone"),
            }
        });
        let mut response = answer(format, body);
        response.extensions_mut().insert(AnswerWithin(within + SLACK));
        response
    }

    fn ask(&self, query: &str, deadline: Instant, open_metrics: bool) -> Vec<Source> {
        let mut sources = Vec::new();
        if self.config.envoy {
            let url = HttpUrl { path: envoy_path(query), ..self.admin.clone() };
            let room = Room::ENVOY;
            let question = Question { url, accept: ACCEPT_TEXT, limit: ENVOY_LIMIT, room, deadline };
            sources.push(Source::ask("envoy", String::new(), question));
        }
        for Target { port, path } in &self.config.targets {
            let url = HttpUrl {
                endpoint: Endpoint::Localhost(*port),
                authority: format!("localhost:{port}"),
                path: path.clone(),
            };
            let accept = if open_metrics { ACCEPT_OPEN_METRICS } else { ACCEPT_TEXT };
            let question = Question { url, accept, limit: TARGET_LIMIT, room: Room::TARGET, deadline };
            sources.push(Source::ask("application", label(&sources, *port, path), question));
        }
        sources
    }
}

/// A target is called by its port; a second one on the same port by its path too, or the two would be one series.
fn label(before: &[Source], port: u16, path: &str) -> String {
    let label = port.to_string();
    if before.iter().all(|source| source.target != label) {
        return label;
    }
    format!("{label}{}", path.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Scraper {
    /// Writes the parts in order, and what became of them.
    async fn write(self, format: Format, sources: Vec<Source>, mut first: Option<Piece>, chunks: Chunks) {
        let mut merge = Merge::new(format);
        let mut out = Vec::new();
        own_part(&self.metrics, &mut merge, &mut out);
        let mut outcomes = Vec::new();
        for mut source in sources {
            let Some((outcome, took)) = copy(&mut source, first.take(), &mut merge, &mut out, &chunks).await
            else {
                return;
            };
            self.note(&source, outcome, took);
            outcomes.push((source, outcome, took));
        }
        let told = outcome_part(&outcomes, merge.duplicates());
        let mut part = Part::new(Format::Text, Room::TARGET);
        let fed = merge.feed(&mut part, told.as_bytes(), &mut out);
        let finished = merge.finish(part, true, &mut out);
        debug_assert!(fed.is_ok() && finished.is_ok(), "our own lines are lines");
        out.extend_from_slice(merge.end());
        let _ = chunks.send(out.into()).await;
    }

    fn note(&self, source: &Source, outcome: Outcome, took: Duration) {
        let Source { part, target, .. } = source;
        self.metrics.scrape(part, outcome.word());
        debug!(part, target, outcome = outcome.word(), seconds = took.as_secs_f64(), "scraped");
        if outcome == Outcome::Ok {
            return;
        }
        let mut missing = self.missing.lock().expect("nothing panics while it holds this lock");
        if let Some(times) = missing.entry(format!("{part} {target}")).or_default().came(Instant::now()) {
            warn!(part, target, outcome = outcome.word(), times, "a part of the metrics is missing or cut");
        }
    }
}

/// `None`: the caller has gone.
async fn copy(
    source: &mut Source,
    mut first: Option<Piece>,
    merge: &mut Merge,
    out: &mut Vec<u8>,
    chunks: &Chunks,
) -> Option<(Outcome, Duration)> {
    let mut part = Part::new(Format::Text, source.room);
    let began = Instant::now();
    let (outcome, took) = loop {
        let piece = match first.take() {
            Some(piece) => Some(piece),
            None => source.pieces.recv().await,
        };
        match piece {
            Some(Piece::Begins(format)) => part = Part::new(format, source.room),
            Some(Piece::Data(data)) => {
                let fed = merge.feed(&mut part, &data, out);
                if !out.is_empty() {
                    chunks.send(std::mem::take(out).into()).await.ok()?;
                }
                if let Err(cut) = fed {
                    break (cut.into(), began.elapsed());
                }
                // Where everybody is quick nothing above waits, and others have questions too.
                yield_now().await;
            }
            Some(Piece::Ends(outcome, took)) => break (outcome, took),
            None => break (Outcome::BadBody, began.elapsed()),
        }
    };
    let finished = merge.finish(part, outcome == Outcome::Ok, out);
    Some((finished.map_or_else(Outcome::from, |()| outcome), took))
}

fn own_part(metrics: &Metrics, merge: &mut Merge, out: &mut Vec<u8>) {
    let mut part = Part::new(Format::OpenMetrics, Room::TARGET);
    let fed = merge.feed(&mut part, metrics.encode().as_bytes(), out);
    let finished = merge.finish(part, true, out);
    debug_assert!(fed.is_ok() && finished.is_ok(), "our own lines are lines");
}

/// What is known only when everything has been written.
fn outcome_part(outcomes: &[(Source, Outcome, Duration)], duplicates: u64) -> String {
    let series = |name: &str, value: &dyn Fn(&(Source, Outcome, Duration)) -> String| {
        let line = |outcome: &(Source, Outcome, Duration)| {
            let (part, target) = (outcome.0.part, &outcome.0.target);
            format!("app_health_agent_{name}{{part=\"{part}\",target=\"{target}\"}} {}\n", value(outcome))
        };
        outcomes.iter().map(line).collect::<String>()
    };
    let up = series("scrape_up", &|(_, outcome, _)| u8::from(*outcome == Outcome::Ok).to_string());
    let seconds = series("scrape_duration_seconds", &|(.., took)| format!("{:.6}", took.as_secs_f64()));
    format!(
        "# HELP app_health_agent_scrape_up 1 if this part is whole in this scrape\n# TYPE app_health_agent_scrape_up gauge\n{up}\
         # HELP app_health_agent_scrape_duration_seconds How long this part took\n\
         # TYPE app_health_agent_scrape_duration_seconds gauge\n{seconds}\
         # HELP app_health_agent_duplicate_families HELP and TYPE lines of this scrape that a family had already\n\
         # TYPE app_health_agent_duplicate_families gauge\napp_health_agent_duplicate_families {duplicates}\n"
    )
}

fn answer(format: Format, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response
}

#[cfg(test)]
mod tests;
