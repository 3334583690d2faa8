//! Interprets the headers and the query of a scrape request.

use std::time::Duration;

use hyper::header::HeaderMap;

use super::SLACK;

/// Default and maximum deadline of a scrape: Envoy's route times out after 10 s.
const DEADLINE: Duration = Duration::from_millis(9_500);
/// Query parameters of the client that are forwarded to Envoy.
const ENVOY_PARAMETERS: [&str; 3] = ["usedonly", "filter", "text_readouts"];
/// Header with the scraper's timeout in seconds.
pub(super) const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";

/// Returns the time that a scrape may take.
pub(super) fn timeout(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(SCRAPE_TIMEOUT).and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout.map_or(DEADLINE, |timeout| timeout.saturating_sub(SLACK).clamp(SLACK, DEADLINE))
}

/// Returns `/stats/prometheus` with the query parameters of the client that select metrics.
pub(super) fn envoy_path(query: &str) -> String {
    let is_forwarded = |field: &&str| ENVOY_PARAMETERS.contains(&field.split('=').next().unwrap_or_default());
    let forwarded: Vec<&str> = query.split('&').filter(is_forwarded).collect();
    let separator = if forwarded.is_empty() { "" } else { "?" };
    format!("/stats/prometheus{separator}{}", forwarded.join("&"))
}
