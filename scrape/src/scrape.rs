//! `GET /stats/prometheus` on the local server: the metrics of agent, Envoy and application in one
//! response. All sources are scraped concurrently; their metrics are streamed in chunks, in the order
//! in which they arrive.

mod arrivals;
mod bound;
mod dropped;
mod envoy;
mod families;
mod gunzip;
mod labels;
mod line;
mod merge;
mod open_sample;
mod reader;
mod redirect;
mod request;
mod series;
mod source;
mod summary;
mod turns;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serving::http_server::{Body, Chunks, Response, ResponseTimeout, text};
use serving::log_limiter::LogLimiter;
use serving::shared_pool::SharedPool;
use serving::source::Source as Client;
use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::{MetricsConfig, Target};
use address::RequestFailure;
use address::{Endpoint, HttpUrl};
use agent_state::metrics::Metrics;
use arrivals::Arrivals;
pub use dropped::{DropReason, Dropped, DroppedLines};
pub use families::{FamilyLimit, Owner};
pub use line::Format;
pub use merge::{Merge, SourceState};
pub use reader::Reader;
use request::{client, envoy_path, timeout};
use source::{Chunk, ScrapeRequest, Source, SourceName, SourceScrape};
use summary::Outcome;
use turns::Turns;

pub type ScrapeResult = Result<(), RequestFailure>;

/// Maximum number of scrapes in progress: far fewer than the connections of the local server, so that
/// it still accepts `drain`.
const SCRAPES: usize = 24;
/// Time by which the deadline of the sources precedes the scraper's timeout.
const SLACK: Duration = Duration::from_millis(500);
/// Maximum size of Envoy's metrics in bytes.
const ENVOY_LIMIT: usize = 64 << 20;
/// Maximum size of an application's metrics in bytes.
const TARGET_LIMIT: usize = 10 << 20;
/// Number of chunks that are buffered per source, each of at most 16 KiB.
const CHUNKS: usize = 2;
/// Part of a scrape's time for which a source that pauses may delay the others.
const PATIENCE: u32 = 100;
/// The agent among the sources.
const OWN: Owner = Owner::Source(0);
const TEXT_FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
/// Content-Type for scrapers that accept names in quotes.
const QUOTED_NAMES_FORMAT: HeaderValue =
    HeaderValue::from_static("text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8");

/// Scrapes all sources and merges their metrics.
#[derive(Clone)]
pub struct Scraper {
    metrics: Arc<Metrics>,
    config: Arc<MetricsConfig>,
    admin: HttpUrl,
    /// If all are taken, a client with few scrapes gets the slot of the client with the most, so slow
    /// readers cannot take those of other addresses.
    slots: SharedPool,
    envoy_turns: Arc<Turns>,
    /// Limiters of the warnings about incomplete sources, by source and target.
    warnings: Arc<Mutex<BTreeMap<String, LogLimiter>>>,
}

impl Scraper {
    /// `admin` is the URL of Envoy's admin interface; its path is ignored.
    pub fn new(metrics: Arc<Metrics>, config: MetricsConfig, admin: HttpUrl) -> Self {
        Self {
            metrics,
            config: Arc::new(config),
            admin,
            slots: SharedPool::new(SCRAPES, SCRAPES),
            envoy_turns: Arc::default(),
            warnings: Arc::default(),
        }
    }

    /// Returns the agent's own metrics.
    pub fn own(&self) -> Response {
        let mut out = Vec::new();
        merge_own(&self.metrics, &mut Merge::default(), &mut out);
        response(Body::from(Bytes::from(out)))
    }

    /// Returns the metrics of all sources for a client of Envoy's route, which names it in a header.
    pub async fn merged(
        &self,
        headers: &HeaderMap,
        query: &str,
        disconnect: impl FnOnce() + Send + 'static,
    ) -> Response {
        self.merged_for(client(headers), headers, query, disconnect).await
    }

    /// Returns the metrics of all sources. The status is 200 once a scrape has started, and 503 with
    /// Retry-After if 24 are in progress and those of other clients are not more than this client's.
    /// `disconnect` is called if another client gets the slot of this scrape.
    pub async fn merged_for(
        &self,
        client: Option<Client>,
        headers: &HeaderMap,
        query: &str,
        disconnect: impl FnOnce() + Send + 'static,
    ) -> Response {
        let Ok(slot) = self.slots.admit_fairly(client) else {
            return unavailable("too many scrapes are in progress\n");
        };
        self.metrics.scraped.total.inc();
        let (timeout, reader) = (timeout(headers), Reader::of(headers));
        let sources = self.spawn_sources(query, reader, Instant::now() + timeout);
        let (chunks, body) = Body::chunks(CHUNKS);
        let closed = chunks.clone();
        let write = self.clone().write(sources, reader, timeout / PATIENCE, chunks);
        tokio::spawn(async move {
            // When the scraper disconnects, its slot is free immediately, whatever a source does.
            tokio::select! {
                () = write => {}
                () = closed.closed() => debug!("scraper disconnected"),
                () = slot.evicted() => {
                    debug!("scrape ended because another client needs its slot");
                    disconnect();
                    // Without a sender, the response would end here as if it were complete.
                    closed.closed().await;
                }
            }
        });
        let mut response = response(body);
        if reader.accepts_quoted_names {
            response.headers_mut().insert(CONTENT_TYPE, QUOTED_NAMES_FORMAT);
        }
        response.extensions_mut().insert(ResponseTimeout(timeout + SLACK));
        response
    }

    fn spawn_sources(&self, query: &str, reader: Reader, deadline: Instant) -> Vec<Source> {
        let mut sources = Vec::new();
        if self.config.envoy {
            sources.push(self.spawn_envoy(query, reader, deadline));
        }
        let targets = &self.config.targets;
        for (position, (Target { port, path }, number)) in targets.iter().zip(2..).enumerate() {
            let url = HttpUrl {
                endpoint: Endpoint::Localhost(*port),
                authority: format!("localhost:{port}"),
                path: path.clone(),
            };
            let is_labelled = self.config.labels_targets;
            let owner = if is_labelled { Owner::Labelled } else { Owner::Source(number) };
            let (target, families) = (label(&targets[..position], *port, path), FamilyLimit::TARGET);
            let source = SourceName { name: "application", target, owner, families };
            let request = ScrapeRequest { url, limit: TARGET_LIMIT, deadline, reader, turns: None };
            sources.push(Source::spawn(source, request));
        }
        sources
    }

    fn spawn_envoy(&self, query: &str, reader: Reader, deadline: Instant) -> Source {
        let url = HttpUrl { path: envoy_path(query), ..self.admin.clone() };
        let turns = Some(self.envoy_turns.clone());
        let (owner, families) = (Owner::Source(1), FamilyLimit::ENVOY);
        let source = SourceName { name: "envoy", target: String::new(), owner, families };
        Source::spawn(source, ScrapeRequest { url, limit: ENVOY_LIMIT, deadline, reader, turns })
    }

    /// Writes the sources in the order in which they arrive, followed by their outcomes.
    async fn write(self, sources: Vec<Source>, reader: Reader, patience: Duration, chunks: Chunks) {
        let mut merge = Merge::new(reader);
        let mut out = Vec::new();
        merge_own(&self.metrics, &mut merge, &mut out);
        let (mut scrapes, receivers): (Vec<_>, Vec<_>) =
            sources.into_iter().map(|source| (source.scrape, source.chunks)).unzip();
        let mut states: Vec<_> = scrapes.iter().map(|scrape| scrape.state(Format::Text)).collect();
        let mut arrivals = Arrivals::new(receivers, patience);
        let mut outcomes = Vec::new();
        while let Some((position, chunk)) = arrivals.next().await {
            let (scrape, state) = (&mut scrapes[position], &mut states[position]);
            match chunk {
                Some(Chunk::Format(format)) => *state = scrape.state(format),
                Some(Chunk::Data(data)) => merge.feed(state, &data, &mut out),
                None => outcomes.push((position, self.finish(scrape, state, &mut merge, &mut out).await)),
            }
            if !out.is_empty() && chunks.send(std::mem::take(&mut out).into()).await.is_err() {
                return;
            }
            // If all peers are fast, nothing above waits, and other tasks must run too.
            yield_now().await;
        }
        outcomes.sort_unstable_by_key(|(position, _)| *position);
        let outcomes: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
        let (shared, first_shared) = merge.shared();
        if let Some(family) = first_shared {
            self.warn_limited("shared", |times| {
                warn!(
                    family,
                    families = shared,
                    times,
                    "metrics sources share families, equal series are lost"
                );
            });
        }
        let summary = summary::text(&outcomes, merge.duplicates(), shared);
        merge_generated(Format::Text, &summary, &mut merge, &mut out);
        let _ = chunks.send(out.into()).await;
    }

    /// Ends a source, and records its outcome.
    async fn finish(
        &self,
        scrape: &mut SourceScrape,
        state: &mut SourceState,
        merge: &mut Merge,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let (result, took) = scrape.result().await;
        merge.finish(state, result.is_ok(), out);
        let result = result.and_then(|()| state.result());
        let SourceName { name, target, .. } = &scrape.source;
        self.record(&scrape.source, result, took);
        for (reason, DroppedLines { count, first }) in state.dropped().by_reason() {
            let reason = reason.word();
            self.metrics.dropped_lines(name, reason, count);
            self.warn_limited(&format!("{name} {target} {reason}"), |times| {
                warn!(
                    source = name,
                    target,
                    reason,
                    line = first,
                    lines = count,
                    times,
                    "metrics lines dropped"
                );
            });
        }
        let dropped = state.dropped().total();
        Outcome { name, target: target.clone(), result, took, dropped }
    }

    fn record(&self, source: &SourceName, result: ScrapeResult, took: Duration) {
        let SourceName { name, target, .. } = source;
        let outcome = RequestFailure::outcome(result);
        self.metrics.scrape(name, outcome);
        debug!(source = name, target, outcome, seconds = took.as_secs_f64(), "scraped");
        if result.is_err() {
            let failures = &self.metrics.scraped;
            match *name {
                "envoy" => failures.envoy_failures.inc(),
                _ => failures.application_failures.inc(),
            };
            self.warn_limited(&format!("{name} {target}"), |times| {
                warn!(source = name, target, outcome, times, "metrics source missing or truncated");
            });
        }
    }

    /// Logs a warning unless one of the same key was logged less than a minute ago. `log` gets the
    /// number of occurrences.
    fn warn_limited(&self, key: &str, log: impl FnOnce(u64)) {
        let mut warnings = self.warnings.lock().expect("nothing panics while it holds this lock");
        if let Some(times) = warnings.entry(key.to_owned()).or_default().record(Instant::now()) {
            log(times);
        }
    }
}

/// Returns the label of a target: its port, or its port and path if an earlier target has the same
/// port, because otherwise both would be the same series.
fn label(before: &[Target], port: u16, path: &str) -> String {
    if before.iter().all(|target| target.port != port) {
        return port.to_string();
    }
    format!("{port}{}", path.replace('\\', "\\\\").replace('"', "\\\""))
}

fn merge_own(metrics: &Metrics, merge: &mut Merge, out: &mut Vec<u8>) {
    merge_generated(Format::OpenMetrics, &metrics.encode(), merge, out);
}

fn merge_generated(format: Format, text: &str, merge: &mut Merge, out: &mut Vec<u8>) {
    let mut state = SourceState::new(format, FamilyLimit::TARGET, OWN, None);
    merge.feed(&mut state, text.as_bytes(), out);
    merge.finish(&mut state, true, out);
    debug_assert!(state.result().is_ok() && state.dropped().total() == 0, "the generated lines are valid");
}

fn unavailable(reason: &'static str) -> Response {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, reason);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, TEXT_FORMAT);
    response
}

#[cfg(test)]
mod tests;
