//! The metrics about probes: their names and labels, which are the same in every form.

use crate::path::ProbeKind;

enum_table::table! {
    /// What metrics that differ in the values of their labels have in common.
    #[derive(PartialOrd, Ord)]
    pub enum Family(
        /// Returns the name as Prometheus has it.
        name: &'static str,
        /// Returns true for a gauge, false for a counter.
        is_gauge: bool,
        /// Returns the names of the labels, in the order of their values.
        labels: &'static [&'static str],
    ) {
        /// Counts the results of a prober by reason.
        ProbesTotal("app_health_probes_total", false, &["container", "kind", "reason"]),
        /// The last result of a prober: 1 for success, 0 for failure.
        ProbeSuccess("app_health_probe_success", true, &["container", "kind"]),
        /// Counts the requests that were answered with `unknown_probe`.
        UnknownProbesTotal("app_health_unknown_probes_total", false, &[]),
        /// Counts the configurations that were rejected.
        ConfigRejectedTotal("app_health_config_rejected_total", false, &[]),
    }
}

/// Returns the value of the gauge before the first probe, which is kubelet's initial result
/// (`pkg/kubelet/prober/worker.go`): a container counts as alive, but not as ready or started. A
/// hook that has not run yet has not failed.
pub fn initial_success(kind: ProbeKind) -> bool {
    !matches!(kind, ProbeKind::Readiness | ProbeKind::Startup)
}
