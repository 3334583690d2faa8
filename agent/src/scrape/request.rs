//! Interprets the headers and the query of a scrape request.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::ACCEPT;

use super::SLACK;

/// Default and maximum deadline of a scrape: Envoy's route times out after 10 s.
const DEADLINE: Duration = Duration::from_millis(9_500);
/// Query parameters of the client that are forwarded to Envoy.
const ENVOY_PARAMETERS: [&str; 3] = ["usedonly", "filter", "text_readouts"];
/// Header with the scraper's timeout in seconds.
pub(super) const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";

/// Returns the deadline of a scrape.
pub(super) fn deadline(headers: &HeaderMap) -> Duration {
    let said = headers.get(SCRAPE_TIMEOUT).and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
    let said = said.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    said.map_or(DEADLINE, |said| said.saturating_sub(SLACK).clamp(SLACK, DEADLINE))
}

/// Returns `/stats/prometheus` with the query parameters of the client that select metrics.
pub(super) fn envoy_path(query: &str) -> String {
    let is_passed = |field: &&str| ENVOY_PARAMETERS.contains(&field.split('=').next().unwrap_or_default());
    let passed: Vec<&str> = query.split('&').filter(is_passed).collect();
    let separator = if passed.is_empty() { "" } else { "?" };
    format!("/stats/prometheus{separator}{}", passed.join("&"))
}

/// Returns true if the client accepts OpenMetrics 1.0.0 with a weight above zero.
pub(super) fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let mut words = range.split(';').map(str::trim);
        let is_kind =
            words.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/openmetrics-text"));
        is_kind
            && words.all(|word| match word.split_once('=') {
                Some(("version", version)) => version.trim_matches('"') == "1.0.0",
                Some(("q", weight)) => weight.parse::<f64>().is_ok_and(|weight| weight > 0.0),
                _ => true,
            })
    })
}
