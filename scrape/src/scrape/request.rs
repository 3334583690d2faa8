//! Interprets the headers and the query of a scrape request.

use std::net::IpAddr;
use std::time::Duration;

use hyper::header::HeaderMap;
use serving::source::Source;

use super::SLACK;

/// Default and maximum deadline of a scrape: Envoy's route times out after 10 s.
const DEADLINE: Duration = Duration::from_millis(9_500);
/// Query parameters of the client that are forwarded to Envoy, without a value. `filter` is not among
/// them: it is a regular expression that Envoy's main thread would run for any client.
const ENVOY_PARAMETERS: [&str; 2] = ["usedonly", "text_readouts"];
/// Header with the scraper's timeout in seconds.
pub(super) const SCRAPE_TIMEOUT: &str = "x-prometheus-scrape-timeout-seconds";

/// Header with the client's address, which the route of the probe listener sets and no client can.
pub(super) const CLIENT: &str = "x-app-health-client";

/// Returns the client of a scrape that came through Envoy, or `None` if the route does not name it.
pub(super) fn client(headers: &HeaderMap) -> Option<Source> {
    let address: IpAddr = headers.get(CLIENT)?.to_str().ok()?.parse().ok()?;
    Some(address.into())
}

/// Returns the time that a scrape may take, which is below the scraper's timeout.
pub(super) fn timeout(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(SCRAPE_TIMEOUT).and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout.map_or(DEADLINE, |timeout| (timeout - SLACK.min(timeout / 2)).min(DEADLINE))
}

/// Returns `/stats/prometheus` with the query parameters of the client that select metrics.
pub(super) fn envoy_path(query: &str) -> String {
    let is_set = |name: &&str| query.split('&').any(|field| field.split('=').next() == Some(*name));
    let forwarded: Vec<&str> = ENVOY_PARAMETERS.into_iter().filter(is_set).collect();
    let separator = if forwarded.is_empty() { "" } else { "?" };
    format!("/stats/prometheus{separator}{}", forwarded.join("&"))
}
