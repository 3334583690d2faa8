//! The checks of the rules, by topic.

pub(crate) mod api_version;
mod client_address;
mod handlers;
pub(crate) mod injection;
mod liveness;
pub(crate) mod placement;
mod readiness;
mod termination;
mod unknown_fields;
mod validation;

use crate::Options;
use crate::finding::Findings;
use crate::pod_view::PodView;

/// Applies the rules about probes and hooks to a well-formed Pod.
pub(crate) fn check(pod: &PodView, options: &Options, findings: &mut Findings) {
    validation::check(pod, findings);
    unknown_fields::check(pod, findings);
    handlers::check(pod, findings);
    client_address::check(pod, findings);
    liveness::check(pod, options, findings);
    termination::check(pod, findings);
    readiness::check(pod, findings);
}
