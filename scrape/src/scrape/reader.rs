//! What the parser of a scraper accepts, as the scraper's request shows.

use hyper::header::{ACCEPT, HeaderMap, USER_AGENT};

/// Parser of a scraper. By default it is unknown, and gets what every parser accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reader {
    /// True for Prometheus, which keeps an `le` or `quantile` that is no number. Others reject the
    /// whole response.
    pub is_prometheus: bool,
    /// True for Prometheus 3, which stores the `le` `1` as `1.0` if the last `TYPE` line says that
    /// this is a histogram, and `quantile` of a summary. In a merged response, that line may belong to
    /// another family.
    pub normalizes_bounds: bool,
    /// True if the scraper accepts names in quotes, such as `{"a.b"}`.
    pub accepts_quoted_names: bool,
}

impl Reader {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accept: String = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let accept = accept.to_ascii_lowercase().replace(' ', "");
        let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let version = user_agent.strip_prefix("Prometheus/").map(|version| {
            let major = version.split('.').next().unwrap_or_default();
            major.parse().unwrap_or(0)
        });
        // Prometheus 3 introduced this version of the text format, and other programs with its
        // parser accept it too.
        let is_3 = version.is_some_and(|major| major >= 3) || accept.contains("text/plain;version=1.0.0");
        Self {
            is_prometheus: is_3 || version.is_some(),
            normalizes_bounds: is_3,
            accepts_quoted_names: accept.contains("escaping=allow-utf-8"),
        }
    }
}

#[cfg(test)]
mod tests;
