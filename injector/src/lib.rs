//! Pods and Kubernetes documents in; Pods with rewritten probes and the sidecar, patches and
//! warnings out.

mod constraints;
pub mod container;
mod decision;
pub mod declared_probe;
pub mod document;
pub mod flags;
mod injection;
pub mod json;
pub mod kinds;
pub mod kustomization;
mod listeners;
pub mod patch;
pub mod pod;
mod pod_context;
mod pod_overrides;
mod rewrite;
pub mod settings;
mod sidecar;
pub mod skip;
pub mod template;
pub mod warning;
pub mod windows;
pub mod workload;
pub mod yaml;
pub mod yaml_documents;

pub use container::{Container, Role};
pub use decision::{ISTIO_PROXY, SkipReason};
pub use declared_probe::{Handler, Probe};
pub use injection::{Cause, Injection, PodOutcome, apply};
pub use pod::InvalidPod;
pub use pod_context::PodContext;
pub use probe::{HandlerField, HandlerKind, ProbeKind};
pub use rewrite::{ProbeResult, ProbeSummary};
pub use template::AUTO_IMAGE;

/// The environment variable of the sidecar with the declared probes as JSON.
pub const PROBERS_ENV: &str = "ISTIO_KUBE_APP_PROBERS";
/// The environment variable with the listen address of the probe listener; set if the status port
/// is not 15020.
pub const PROBE_ADDRESS_ENV: &str = "APP_HEALTH_PROBE_ADDRESS";
/// The annotation with the details of the injection.
pub const STATUS_ANNOTATION: &str = "app-health.io/status";
/// The annotation with the original probes.
pub const ORIGINAL_PROBES_ANNOTATION: &str = "app-health.io/original-probes";
/// The annotation with the warnings.
pub const WARNINGS_ANNOTATION: &str = "app-health.io/warnings";
/// Label of Pods and namespaces in an Istio mesh: `enabled` chooses our agent, by the policy of the chart
/// app-health-istio; `disabled` on a Pod keeps Istio's.
pub const ISTIO_AGENT_LABEL: &str = "app-health.io/istio-agent";

#[cfg(test)]
mod tests;
