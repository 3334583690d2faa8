//! The rule about Pods without a readinessProbe.

use injector::{ProbeKind, Role};

use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
use crate::rule::NO_READINESS;

/// One finding for a Pod, at the first application that declares ports.
pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    if pod.completes {
        return;
    }
    let applications = || pod.containers.iter().filter(|container| container.role == Role::Application);
    if applications().any(|container| container.probe(ProbeKind::Readiness).is_some()) {
        return;
    }
    if let Some(container) = applications().find(|container| !container.ports().is_empty()) {
        let message = "it declares ports, and no container of the Pod has a readinessProbe";
        findings.add_at(&NO_READINESS, Place::of(container), "", message);
    }
}
