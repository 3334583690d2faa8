//! A Pod on Windows has the sidecar, which is a program for Linux.

use crate::finding::{Code, Finding};
use crate::view::View;
use crate::windows;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let Some(sidecar) = view.sidecar_container().filter(|_| !view.is_ready() && !view.is_terminating())
    else {
        return Vec::new();
    };
    let node = view.situation.node.found();
    let place = windows::field(view.pod).or_else(|| node.and_then(windows::node_field));
    let finding = place.map(|field| {
        let text = format!("the Pod runs on Windows ({field}), but has the sidecar, which is made for Linux");
        let advice = "set the label sidecar.istio.io/inject: \"false\" in the Pod template, and create the Pod again: its probes then stay as they are written";
        Finding::broken(Code::Windows, text, advice).about(sidecar.name)
    });
    finding.into_iter().collect()
}
