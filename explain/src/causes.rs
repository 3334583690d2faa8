//! What can be wrong with a Pod: one file for each idea, tried in the order in which one cause
//! explains the next. A Pod without a node has no containers, one whose image is missing no probes.

mod application;
mod container_config;
mod control_plane;
mod hook;
mod image;
mod init;
mod lifecycle;
mod network;
mod node;
mod not_injected;
mod notes;
mod probe;
mod readiness_gate;
mod sandbox;
mod scheduling;
mod sidecar;
mod sidecar_crash;
mod starting;
mod unknown;
mod volume;
mod windows;

use crate::finding::{Code, Finding, Severity};
use crate::view::View;

type Cause = fn(&View<'_>) -> Vec<Finding>;

const CAUSES: [Cause; 18] = [
    lifecycle::find,
    hook::find,
    node::find,
    scheduling::find,
    windows::find,
    image::find,
    container_config::find,
    volume::find,
    sandbox::find,
    init::find,
    sidecar_crash::find,
    network::find,
    sidecar::find,
    application::find,
    probe::find,
    readiness_gate::find,
    starting::find,
    not_injected::find,
];

/// Returns all findings, the one that explains most first.
pub(crate) fn all(view: &View<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CAUSES.iter().flat_map(|cause| cause(view)).collect();
    // The lack of a sidecar explains no Pod that is not ready.
    let is_explained =
        findings.iter().any(|finding| matches!(finding.severity, Severity::Broken | Severity::Unknown));
    if !is_explained {
        findings.extend(unknown::find(view));
    }
    let notes = notes::find(view);
    // A crash is also a restart.
    let is_known = |note: &Finding| {
        note.code == Code::Restarts
            && findings.iter().any(|finding| {
                finding.container == note.container
                    && matches!(finding.code, Code::Application | Code::OutOfMemory)
            })
    };
    let new: Vec<Finding> = notes.into_iter().filter(|note| !is_known(note)).collect();
    findings.extend(new);
    findings
}
