//! The health of a workload on a virtual machine: its probe and WorkloadGroup, thresholds, the health
//! report, and the state machine that decides which report to send and when.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod fields;
pub mod health_report;
pub mod health_state;
pub mod reporter;
pub mod text;
pub mod workload_group;
pub mod workload_probe;

pub use fields::Checked;
pub use health_report::{HealthReport, Hello, Report};
pub use health_state::{HealthReason, HealthState, Outcome, Shutdown, State, Transition, Unhealthy, Verdict};
pub use workload_group::{WorkloadGroup, WorkloadTemplate};
pub use workload_probe::{Thresholds, WorkloadHandler, WorkloadHttpGet, WorkloadProbe};
