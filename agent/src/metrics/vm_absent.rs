//! A build without virtual machines has no metrics about them.

use prometheus_client::registry::Registry;

#[derive(Debug)]
pub struct VmMetrics;

impl VmMetrics {
    pub(super) fn new(_: &mut Registry) -> Self {
        Self
    }

    pub(super) fn update(&self) {}
}
