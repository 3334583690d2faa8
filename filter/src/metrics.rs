//! The metrics as values, and how they are defined in Envoy.

pub use probe::metrics::Family;
use probe::metrics::initial_success;
use probe::{ProbePath, Reason};

use crate::config::DeclaredProbe;

/// A counter or a gauge with its labels.
#[derive(Clone, Copy, Debug)]
pub enum Metric<'a> {
    ProbesTotal(&'a ProbePath, Reason),
    ProbeSuccess(&'a ProbePath),
    UnknownProbesTotal,
    ConfigRejectedTotal,
}

impl<'a> Metric<'a> {
    pub fn family(&self) -> Family {
        match self {
            Self::ProbesTotal(..) => Family::ProbesTotal,
            Self::ProbeSuccess(_) => Family::ProbeSuccess,
            Self::UnknownProbesTotal => Family::UnknownProbesTotal,
            Self::ConfigRejectedTotal => Family::ConfigRejectedTotal,
        }
    }

    /// Returns the name with its labels as Envoy's stats tags expect them: `;name=value` for each.
    pub fn tagged_name(&self) -> String {
        let family = self.family();
        let mut name = family.name().to_owned();
        for (label, value) in family.labels().iter().zip(self.label_values()) {
            for part in [";", label, "=", value] {
                name.push_str(part);
            }
        }
        name
    }

    /// Returns the value of each label of the family, in their order.
    pub fn label_values(&self) -> impl Iterator<Item = &'a str> {
        let (path, reason) = match *self {
            Self::ProbesTotal(path, reason) => (Some(path), Some(reason)),
            Self::ProbeSuccess(path) => (Some(path), None),
            Self::UnknownProbesTotal | Self::ConfigRejectedTotal => (None, None),
        };
        let prober = path.map(|path| [path.container(), path.kind().word()]);
        prober.into_iter().flatten().chain(reason.map(Reason::word))
    }
}

/// How the filter updates Envoy's metrics.
pub trait MetricsHost {
    /// Defines a metric once, and finds it from then on. Returns `None` if Envoy refuses.
    fn define(&mut self, metric: Metric<'_>) -> Option<Definition>;

    /// Adds 1 to a counter.
    fn increment(&mut self, id: usize, metric: Metric<'_>);

    /// Sets a gauge.
    fn set(&mut self, id: usize, metric: Metric<'_>, value: u64);

    /// Defines a counter and adds 1 to it.
    fn count(&mut self, metric: Metric<'_>) {
        if let Some(Definition { id, .. }) = self.define(metric) {
            self.increment(id, metric);
        }
    }
}

/// A defined metric.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The id of the metric, or of its family if the host finds the metric by its labels.
    pub id: usize,
    /// True if no configuration that still exists has defined the metric.
    pub is_new: bool,
}

/// Defines the metrics that a healthy prober needs before its first probe, and sets a new gauge to
/// kubelet's initial result.
pub fn define_initial(probe: &DeclaredProbe, host: &mut impl MetricsHost) {
    let path = &probe.plan.path;
    let _ = id(probe, Some(Reason::Ok), Metric::ProbesTotal(path, Reason::Ok), host);
    let gauge = Metric::ProbeSuccess(path);
    if let Some(Definition { id, is_new }) = host.define(gauge) {
        probe.stats.set_metric(None, id);
        if is_new {
            host.set(id, gauge, u64::from(initial_success(path.kind())));
        }
    }
}

/// Returns the id of a prober's counter for a reason, or of its gauge for `None`.
pub(crate) fn id(
    probe: &DeclaredProbe,
    reason: Option<Reason>,
    metric: Metric<'_>,
    host: &mut impl MetricsHost,
) -> Option<usize> {
    probe.stats.metric(reason).or_else(|| {
        let Definition { id, .. } = host.define(metric)?;
        probe.stats.set_metric(reason, id);
        Some(id)
    })
}

#[cfg(test)]
mod tests;
