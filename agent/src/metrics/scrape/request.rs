//! PURE. What a scraper asks for.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::ACCEPT;

use super::SLACK;

/// Without a word of the scraper's own, and the longest: Envoy's route ends after 10 s, and nobody may hold a place for longer.
const DEADLINE: Duration = Duration::from_millis(9_500);
/// Parameters of the caller that Envoy gets.
const ENVOY_PARAMETERS: [&str; 3] = ["usedonly", "filter", "text_readouts"];
/// How long a scraper waits, in seconds.
pub(super) const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";

/// How long a scrape may take.
pub(super) fn deadline(headers: &HeaderMap) -> Duration {
    let said = headers.get(SCRAPE_TIMEOUT).and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
    let said = said.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    said.map_or(DEADLINE, |said| said.saturating_sub(SLACK).clamp(SLACK, DEADLINE))
}

/// `/stats/prometheus` with those parameters of the caller that choose metrics.
pub(super) fn envoy_path(query: &str) -> String {
    let is_passed = |field: &&str| ENVOY_PARAMETERS.contains(&field.split('=').next().unwrap_or_default());
    let passed: Vec<&str> = query.split('&').filter(is_passed).collect();
    let separator = if passed.is_empty() { "" } else { "?" };
    format!("/stats/prometheus{separator}{}", passed.join("&"))
}

/// Does the caller name OpenMetrics 1.0.0, and not with a weight of nothing?
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
