//! A Pod on Windows has the sidecar, which is a program for Linux.

use crate::container::{Container, Role};
use crate::finding::{Code, Finding};
use crate::view::View;
use crate::windows;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    if view.is_ready() || view.is_terminating() {
        return Vec::new();
    }
    let finding = view.sidecar_container().zip(place(view)).map(|(sidecar, place)| {
        let text = format!("the Pod runs on Windows ({place}), but has the sidecar, which is made for Linux");
        let advice = "set the label sidecar.istio.io/inject: \"false\" in the Pod template, and create the Pod again: its probes then stay as they are written";
        Finding::broken(Code::Windows, text, advice).about(sidecar.name)
    });
    finding.into_iter().collect()
}

/// Returns true if the container is the sidecar of a Pod on Windows, and cannot work.
pub(super) fn explains(view: &View<'_>, container: &Container<'_>) -> bool {
    container.role == Role::Proxy && place(view).is_some()
}

/// Returns what says that the Pod runs on Windows.
fn place(view: &View<'_>) -> Option<String> {
    injector::windows::field(view.pod).or_else(|| view.situation.node.found().and_then(windows::node_field))
}
