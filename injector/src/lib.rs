//! Pods with ordinary probes in, Pods whose probes arrive at the filter out. Everything below is pure, but `command`.

mod decision;
pub mod document;
pub mod flags;
mod handler;
mod injection;
pub mod json;
mod merge;
pub mod patch;
mod pod;
mod record;
mod rewrite;
pub mod settings;
mod sidecar;
pub mod stream;
mod table;
pub mod template;
pub mod warning;
mod wishes;
pub mod workload;
pub mod yaml;

pub use decision::AUTO_IMAGE;
pub use injection::{Injection, Outcome, Probe, ProbeResult, Refused, Surroundings, apply};

/// The variable that holds the prober table.
pub const TABLE_VARIABLE: &str = "ISTIO_KUBE_APP_PROBERS";
/// The variable that tells the agent where probes arrive, if not on 15020.
pub const ADDRESS_VARIABLE: &str = "APP_HEALTH_PROBE_ADDRESS";
/// Annotation: how the Pod was injected.
pub const STATUS: &str = "app-health.io/status";
/// Annotation: the probes as they were.
pub const ORIGINAL_PROBES: &str = "app-health.io/original-probes";
/// Annotation: what could not be done.
pub const WARNINGS: &str = "app-health.io/warnings";

#[cfg(test)]
mod tests;
