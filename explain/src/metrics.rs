//! The few metrics of the sidecar that explain something.

use std::collections::BTreeMap;

/// One line of Prometheus' text format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    pub(crate) name: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    pub(crate) value: u64,
}

impl<'a> Sample<'a> {
    /// Returns the value of a label; empty if the sample does not have it.
    pub(crate) fn label(&self, name: &str) -> &'a str {
        self.labels.get(name).copied().unwrap_or_default()
    }
}

/// Returns the metrics of the filter and of the agent, which in a mesh of Istio are also those of Istio's agent. Labels
/// of theirs contain no escapes.
pub(crate) fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    let is_ours = |line: &&str| line.starts_with("app_health_") || line.starts_with("istio_agent_");
    text.lines().filter(is_ours).filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let (series, value) = line.trim().rsplit_once(' ')?;
    let value: f64 = value.parse().ok()?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let pairs = labels.strip_suffix('}')?.split(',').filter_map(|pair| pair.split_once('='));
    let labels = pairs.map(|(name, value)| (name, value.trim_matches('"'))).collect();
    // Counters of these metrics are far below 2^53.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    Some(Sample { name, labels, value: value as u64 })
}

#[cfg(test)]
mod tests;
