//! Pods and Kubernetes documents in; Pods with rewritten probes and the sidecar, patches and
//! warnings out.

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

/// The environment variable of the sidecar with the declared probes as JSON.
pub const TABLE_VARIABLE: &str = "ISTIO_KUBE_APP_PROBERS";
/// The environment variable with the listen address of the probe listener; set if the status port
/// is not 15020.
pub const ADDRESS_VARIABLE: &str = "APP_HEALTH_PROBE_ADDRESS";
/// The annotation with the details of the injection.
pub const STATUS: &str = "app-health.io/status";
/// The annotation with the original probes.
pub const ORIGINAL_PROBES: &str = "app-health.io/original-probes";
/// The annotation with the warnings.
pub const WARNINGS: &str = "app-health.io/warnings";

#[cfg(test)]
mod tests;
