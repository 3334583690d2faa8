//! `GET /stats/prometheus` on the local server: the metrics of agent, Envoy and application in one
//! response. All sources are scraped concurrently; their metrics are streamed in order and in
//! chunks.

mod families;
mod labels;
mod line;
mod merge;
mod places;
mod request;
mod source;
mod turns;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serving::http_server::{Body, Chunks, Response, ResponseTimeout, text};
use serving::log_limiter::LogLimiter;
use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::address::{Endpoint, HttpUrl};
use crate::config::{MetricsConfig, Target};
use crate::http_client::RequestFailure;
use crate::metrics::Metrics;
pub use families::FamilyLimit;
pub use line::Format;
pub use merge::{Merge, SourceState};
use places::Places;
use request::{client, envoy_path, timeout};
pub use source::ScrapeResult;
use source::{Chunk, ScrapeRequest, Source};
use turns::Turns;

/// Minimum deadline of a scrape, and the time by which the deadline precedes the scraper's timeout.
const SLACK: Duration = Duration::from_millis(500);
/// Maximum size of Envoy's metrics in bytes.
const ENVOY_LIMIT: usize = 64 << 20;
/// Maximum size of an application's metrics in bytes.
const TARGET_LIMIT: usize = 10 << 20;
/// Number of chunks that are buffered per source, each of at most 16 KiB.
const CHUNKS: usize = 4;
const TEXT_FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Scrapes all sources and merges their metrics.
#[derive(Clone)]
pub struct Scraper {
    metrics: Arc<Metrics>,
    config: Arc<MetricsConfig>,
    admin: HttpUrl,
    places: Places,
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
            places: Places::default(),
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

    /// Returns the metrics of all sources. The status is 200 once a scrape has started, and 503 with
    /// Retry-After if 24 are in progress and those of other clients are not more than this client's.
    /// `disconnect` is called if another client gets the place of this scrape.
    pub async fn merged(
        &self,
        headers: &HeaderMap,
        query: &str,
        disconnect: impl FnOnce() + Send + 'static,
    ) -> Response {
        let Some(place) = self.places.take(client(headers)) else {
            let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "too many scrapes are in progress\n");
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return response;
        };
        let timeout = timeout(headers);
        let sources = self.spawn_sources(query, Instant::now() + timeout);
        let (chunks, body) = Body::chunks(CHUNKS);
        let closed = chunks.clone();
        let write = self.clone().write(sources, chunks);
        tokio::spawn(async move {
            // When the scraper disconnects, its place is free immediately, whatever a source does.
            tokio::select! {
                () = write => {}
                () = closed.closed() => debug!("scraper disconnected"),
                () = place.superseded() => {
                    debug!("scrape ended because another client needs its place");
                    disconnect();
                    // Without a sender, the response would end here as if it were complete.
                    closed.closed().await;
                }
            }
        });
        let mut response = response(body);
        response.extensions_mut().insert(ResponseTimeout(timeout + SLACK));
        response
    }

    fn spawn_sources(&self, query: &str, deadline: Instant) -> Vec<Source> {
        let mut sources = Vec::new();
        if self.config.envoy {
            let url = HttpUrl { path: envoy_path(query), ..self.admin.clone() };
            let request =
                ScrapeRequest { url, limit: ENVOY_LIMIT, deadline, turns: Some(self.envoy_turns.clone()) };
            sources.push(Source::spawn("envoy", String::new(), FamilyLimit::ENVOY, request));
        }
        for Target { port, path } in &self.config.targets {
            let url = HttpUrl {
                endpoint: Endpoint::Localhost(*port),
                authority: format!("localhost:{port}"),
                path: path.clone(),
            };
            let request = ScrapeRequest { url, limit: TARGET_LIMIT, deadline, turns: None };
            let target = label(&sources, *port, path);
            sources.push(Source::spawn("application", target, FamilyLimit::TARGET, request));
        }
        sources
    }

    /// Writes the sources in order, followed by their outcomes.
    async fn write(self, sources: Vec<Source>, chunks: Chunks) {
        let mut merge = Merge::default();
        let mut out = Vec::new();
        merge_own(&self.metrics, &mut merge, &mut out);
        let mut results = Vec::new();
        for mut source in sources {
            let Some((result, took)) = copy(&mut source, &mut merge, &mut out, &chunks).await else {
                return;
            };
            self.record(&source, result, took);
            results.push((source, result, took));
        }
        let summary = summary(&results, merge.duplicates());
        merge_generated(Format::Text, &summary, &mut merge, &mut out);
        let _ = chunks.send(out.into()).await;
    }

    fn record(&self, source: &Source, result: ScrapeResult, took: Duration) {
        let Source { name, target, .. } = source;
        let outcome = RequestFailure::outcome(result);
        self.metrics.scrape(name, outcome);
        debug!(source = name, target, outcome, seconds = took.as_secs_f64(), "scraped");
        if result.is_ok() {
            return;
        }
        let mut warnings = self.warnings.lock().expect("nothing panics while it holds this lock");
        if let Some(times) = warnings.entry(format!("{name} {target}")).or_default().record(Instant::now()) {
            warn!(source = name, target, outcome, times, "metrics source missing or truncated");
        }
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

/// Copies a source to the response; `None` means that the scraper disconnected.
async fn copy(
    source: &mut Source,
    merge: &mut Merge,
    out: &mut Vec<u8>,
    chunks: &Chunks,
) -> Option<(ScrapeResult, Duration)> {
    let mut state = SourceState::new(Format::Text, source.limit);
    let started = Instant::now();
    let mut truncated: ScrapeResult = Ok(());
    while let Some(chunk) = source.chunks.recv().await {
        match chunk {
            Chunk::Format(format) => state = SourceState::new(format, source.limit),
            Chunk::Data(data) => {
                truncated = merge.feed(&mut state, &data, out);
                if !out.is_empty() {
                    chunks.send(std::mem::take(out).into()).await.ok()?;
                }
                if truncated.is_err() {
                    break;
                }
                // If all peers are fast, nothing above waits, and other tasks must run too.
                yield_now().await;
            }
        }
    }
    let (result, took) = match truncated {
        Ok(()) => (&mut source.task).await.unwrap_or((Err(RequestFailure::BadBody), started.elapsed())),
        Err(_) => (truncated, started.elapsed()),
    };
    let finished = merge.finish(state, result.is_ok(), out);
    Some((finished.and(result), took))
}

fn merge_own(metrics: &Metrics, merge: &mut Merge, out: &mut Vec<u8>) {
    merge_generated(Format::OpenMetrics, &metrics.encode(), merge, out);
}

fn merge_generated(format: Format, text: &str, merge: &mut Merge, out: &mut Vec<u8>) {
    let mut state = SourceState::new(format, FamilyLimit::TARGET);
    let fed = merge.feed(&mut state, text.as_bytes(), out);
    let finished = merge.finish(state, true, out);
    debug_assert!(fed.is_ok() && finished.is_ok(), "the generated lines are valid");
}

/// Returns the metrics about the scrape itself, which are known only at its end.
fn summary(results: &[(Source, ScrapeResult, Duration)], duplicates: u64) -> String {
    let (mut up, mut seconds) = (String::new(), String::new());
    for (Source { name, target, .. }, result, took) in results {
        let labels = format!("{{source=\"{name}\",target=\"{target}\"}}");
        up += &format!("app_health_agent_scrape_up{labels} {}\n", u8::from(result.is_ok()));
        seconds += &format!("app_health_agent_scrape_duration_seconds{labels} {:.6}\n", took.as_secs_f64());
    }
    format!(
        "# HELP app_health_agent_scrape_up 1 if this source was scraped completely\n# TYPE app_health_agent_scrape_up gauge\n{up}\
         # HELP app_health_agent_scrape_duration_seconds Duration of the scrape of this source\n\
         # TYPE app_health_agent_scrape_duration_seconds gauge\n{seconds}\
         # HELP app_health_agent_duplicate_families HELP and TYPE lines of this scrape that were dropped as duplicates\n\
         # TYPE app_health_agent_duplicate_families gauge\napp_health_agent_duplicate_families {duplicates}\n"
    )
}

fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, TEXT_FORMAT);
    response
}

#[cfg(test)]
mod tests;
