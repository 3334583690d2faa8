//! Metrics that only virtual machines have.

pub mod health;
pub mod reports;
pub mod streams;
pub mod xds;

use health::HealthMetrics;
use prometheus_client::registry::Registry;
use reports::ReportMetrics;
use streams::StreamCounts;
use xds::XdsMetrics;

#[derive(Debug)]
pub struct VmMetrics {
    pub health: HealthMetrics,
    pub reports: ReportMetrics,
    pub xds: XdsMetrics,
    pub streams: StreamCounts,
}

impl VmMetrics {
    pub(super) fn new(to: &mut Registry) -> Self {
        Self {
            reports: ReportMetrics::new(to),
            health: HealthMetrics::new(to),
            xds: XdsMetrics::new(to),
            streams: StreamCounts::default(),
        }
    }

    /// Updates the values that depend on the current time.
    pub(super) fn update(&self) {
        self.reports.update();
    }
}
