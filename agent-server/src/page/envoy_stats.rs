//! The statistics of Envoy that the page shows: the query for them, and the parsing of the response in
//! Prometheus' text format.

use std::collections::BTreeMap;

use probe::Reason;

/// Path and query. The filter selects the metrics of the probes, and the lifetimes of the connections
/// to the application, so that the response has a few KiB.
pub(super) const PATH: &str = concat!(
    "/stats/prometheus?histogram_buckets=summary&filter=",
    "app_health_(probe%7Cunknown_probes%7Cconfig_rejected)",
    "%7C%5Ecluster%5C.app_health_(http%7Cgrpc%7Ctcp)(s%7C_tls)?%5C.upstream_cx_length_ms%24"
);
/// Maximum size of the response in bytes.
pub(super) const LIMIT: usize = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EnvoyStats {
    pub(super) probes: BTreeMap<ProbeName, ProbeCounters>,
    /// Requests for probes that are not declared.
    pub(super) unknown: u64,
    /// Configurations that the filter rejected.
    pub(super) rejected: u64,
    /// Lifetimes of connections by cluster.
    pub(super) lengths: BTreeMap<String, Length>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProbeName {
    pub(super) container: String,
    /// The word of a kind, such as `readyz`.
    pub(super) kind: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProbeCounters {
    /// Number of responses since Envoy's start.
    pub(super) reasons: BTreeMap<Reason, u64>,
    /// The last verdict, or kubelet's initial one.
    pub(super) success: Option<bool>,
}

/// Lifetime of connections in milliseconds since Envoy's start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Length {
    pub(super) median: Option<f64>,
    pub(super) p99: Option<f64>,
}

impl EnvoyStats {
    /// Parses a response; lines that are not understood are ignored.
    pub(super) fn parse(text: &str) -> Self {
        let mut stats = Self::default();
        for sample in text.lines().filter_map(Sample::parse) {
            stats.add(&sample);
        }
        stats
    }

    fn add(&mut self, sample: &Sample) {
        let name = || ProbeName { container: sample.label("container"), kind: sample.label("kind") };
        match sample.name {
            "app_health_probes_total" => {
                let word = sample.label("reason");
                if let Some(reason) = Reason::ALL.into_iter().find(|reason| reason.word() == word) {
                    *self.probes.entry(name()).or_default().reasons.entry(reason).or_default() +=
                        sample.count();
                }
            }
            "app_health_probe_success" => {
                self.probes.entry(name()).or_default().success = Some(sample.value > 0.0);
            }
            "app_health_unknown_probes_total" => self.unknown += sample.count(),
            "app_health_config_rejected_total" => self.rejected += sample.count(),
            "envoy_cluster_upstream_cx_length_ms" => {
                let length = self.lengths.entry(sample.label("envoy_cluster_name")).or_default();
                let value = Some(sample.value).filter(|value| value.is_finite());
                match sample.label("quantile").as_str() {
                    "0.5" => length.median = value,
                    "0.99" => length.p99 = value,
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    /// Parses `name{label="value",…} 1`.
    fn parse(line: &'a str) -> Option<Self> {
        let (name, mut rest) = line.split_once('{').filter(|_| !line.starts_with('#'))?;
        let mut labels = Vec::new();
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, length) = unescape(after)?;
            labels.push((label, value));
            rest = after.get(length..)?;
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        let value = rest.get(1..)?.trim().parse().ok()?;
        Some(Self { name, labels, value })
    }

    /// Returns the value of a label; empty if the sample does not have it.
    fn label(&self, name: &str) -> String {
        let found = self.labels.iter().find(|(label, _)| *label == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a counter is a whole number"
    )]
    fn count(&self) -> u64 {
        self.value as u64
    }
}

/// Returns a label's value and its length in `text` with the closing quote.
fn unescape(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    loop {
        match chars.next()? {
            (index, '"') => return Some((value, index + 1)),
            (_, '\\') => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            (_, char) => value.push(char),
        }
    }
}

#[cfg(test)]
mod tests;
