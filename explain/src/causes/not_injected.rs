//! The Pod has no sidecar.

use crate::finding::Finding;
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let injection = &view.injection;
    if injection.injected || view.phase() == "Succeeded" {
        return Vec::new();
    }
    vec![Finding::not_injected(
        format!("the Pod is not injected: {}", injection.text),
        injection.advice.clone(),
    )]
}
