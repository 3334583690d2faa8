//! Builds the content of an auto-registered entry from the group's template and the node metadata.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use workload_health::WorkloadProbe;

use super::{Auto, Node};
use crate::objects::{Group, Spec};

/// Upper limit of the time that an agent has until its first probe result, whatever is configured
/// or reported.
pub(super) const MAX_TIME_TO_RESULT: Duration = Duration::from_secs(24 * 3600);

/// Builds the entry. Labels of the node, if they are trusted, override those of `spec.metadata`,
/// which override those of the template. `health_checks` is true if the agent declares a probe, or if the
/// group has one and the agent may report its result.
pub(super) fn build(group: &Group, node: &Node, address: IpAddr, trust_node_labels: bool) -> Auto {
    let template = &group.group.template;
    let mut labels: BTreeMap<String, String> = template.labels.clone();
    labels.extend(group.group.labels.clone());
    if trust_node_labels {
        labels.extend(node.labels.clone());
    }
    let given = |own: &Option<String>, template: &Option<String>| {
        own.clone().filter(|own| !own.is_empty()).or_else(|| template.clone())
    };
    Auto {
        group: group.key.name.clone(),
        spec: Arc::new(Spec {
            address: address.to_string(),
            ports: template.ports.clone(),
            labels,
            network: given(&node.network, &template.network),
            locality: given(&node.locality, &template.locality),
            weight: template.weight,
            service_account: template.service_account.clone(),
        }),
        annotations: group.group.annotations.clone(),
        health_checks: node.readiness_probe || (group.group.probe.is_some() && !node.never_reports()),
    }
}

/// Returns how long an agent that has just started may be without a probe result: the initial delay
/// plus the failure threshold times (period + timeout). Istio's defaults apply if the probe is
/// unknown.
pub(super) fn time_to_first_result(probe: Option<&WorkloadProbe>) -> Duration {
    match probe {
        Some(probe) => {
            let interval = probe.period.saturating_add(probe.timeout);
            let failures = interval.saturating_mul(probe.thresholds.failure.get());
            probe.initial_delay.saturating_add(failures).min(MAX_TIME_TO_RESULT)
        }
        None => Duration::from_secs(33),
    }
}
