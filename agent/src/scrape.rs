//! `GET /stats/prometheus` on the admin server: the metrics of agent, Envoy and application in one
//! response. All sources are scraped concurrently; their metrics are streamed in order and in
//! chunks.

pub mod families;
pub mod format;
pub mod labels;
pub mod line;
pub mod merge;
mod number;
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

use crate::address::{Endpoint, HttpUrl};
use crate::config::{MetricsConfig, Target};
use crate::http_server::{AnswerWithin, Body, Chunks, Response, text};
use crate::log::LogLimiter;
use crate::metrics::Metrics;
use families::Room;
use format::Format;
use merge::{Merge, Part};
use request::{accepts_open_metrics, deadline, envoy_path};
use source::{Outcome, Piece, Question, Source};

/// Maximum number of concurrent scrapes.
const SCRAPES: usize = 2;
/// Minimum deadline of a scrape, and the time by which the deadline precedes the scraper's timeout.
const SLACK: Duration = Duration::from_millis(500);
/// Maximum size of Envoy's metrics in bytes.
const ENVOY_LIMIT: usize = 64 << 20;
/// Maximum size of an application's metrics in bytes.
const TARGET_LIMIT: usize = 10 << 20;
/// Number of chunks that are buffered per source, each of at most 16 KiB.
const CHUNKS: usize = 4;
/// Accept header of the requests to targets.
const ACCEPT_TEXT: &str = "text/plain;version=0.0.4,*/*;q=0.1";
const ACCEPT_OPEN_METRICS: &str =
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

/// Scrapes all sources and merges their metrics.
#[derive(Clone)]
pub struct Scraper {
    metrics: Arc<Metrics>,
    config: Arc<MetricsConfig>,
    admin: HttpUrl,
    permits: Arc<Semaphore>,
    /// Limiters of the warnings about incomplete sources, by source and target.
    missing: Arc<Mutex<BTreeMap<String, LogLimiter>>>,
}

impl Scraper {
    /// `admin` is the URL of Envoy's admin interface; its path is ignored.
    pub fn new(metrics: Arc<Metrics>, config: MetricsConfig, admin: HttpUrl) -> Self {
        Self {
            metrics,
            config: Arc::new(config),
            admin,
            permits: Arc::new(Semaphore::new(SCRAPES)),
            missing: Arc::default(),
        }
    }

    /// Returns the agent's own metrics.
    pub fn own(&self) -> Response {
        let mut merge = Merge::new(Format::Text);
        let mut out = Vec::new();
        own_part(&self.metrics, &mut merge, &mut out);
        answer(Format::Text, Body::from(Bytes::from(out)))
    }

    /// Returns the metrics of all sources. The status is 200 once a scrape has started. Two scrapes
    /// may run at a time; a third one gets 503 with Retry-After.
    pub async fn merged(&self, headers: &HeaderMap, query: &str) -> Response {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "two scrapes are in progress\n");
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
            // When the scraper disconnects, its permit is released immediately, whatever a source
            // does.
            tokio::select! {
                () = write => {}
                () = gone.closed() => debug!("scraper disconnected"),
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

/// Returns the label of a target: its port, or its port and path if an earlier target has the same
/// port, because otherwise both would be the same series.
fn label(before: &[Source], port: u16, path: &str) -> String {
    let label = port.to_string();
    if before.iter().all(|source| source.target != label) {
        return label;
    }
    format!("{label}{}", path.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Scraper {
    /// Writes the sources in order, followed by their outcomes.
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
        debug_assert!(fed.is_ok() && finished.is_ok(), "the generated lines are valid");
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
        if let Some(times) = missing.entry(format!("{part} {target}")).or_default().record(Instant::now()) {
            warn!(part, target, outcome = outcome.word(), times, "metrics source missing or truncated");
        }
    }
}

/// Copies a source to the response; `None` means that the scraper disconnected.
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
                // If all peers are fast, nothing above waits, and other tasks must run too.
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
    debug_assert!(fed.is_ok() && finished.is_ok(), "the generated lines are valid");
}

/// Returns the metrics about the scrape itself, which are known only at its end.
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
        "# HELP app_health_agent_scrape_up 1 if this source was scraped completely\n# TYPE app_health_agent_scrape_up gauge\n{up}\
         # HELP app_health_agent_scrape_duration_seconds Duration of the scrape of this source\n\
         # TYPE app_health_agent_scrape_duration_seconds gauge\n{seconds}\
         # HELP app_health_agent_duplicate_families HELP and TYPE lines of this scrape that were dropped as duplicates\n\
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
