//! The containers are ready, but a readiness gate of the Pod is not.

use crate::container::list;
use crate::finding::{Code, Finding};
use crate::view::View;

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    if view.is_ready() || view.condition("ContainersReady")["status"] != "True" {
        return Vec::new();
    }
    let gates =
        list(&view.pod["spec"]["readinessGates"]).iter().filter_map(|gate| gate["conditionType"].as_str());
    let pending = gates.filter(|gate| view.condition(gate)["status"] != "True");
    let finding = |gate: &str| {
        let condition = view.condition(gate);
        let message = condition["message"]
            .as_str()
            .filter(|message| !message.is_empty())
            .map(|message| format!(": {message}"))
            .unwrap_or_default();
        let state = if condition.is_null() {
            "no controller has set it"
        } else {
            "its controller reports that it is not met"
        };
        Finding::broken(
            Code::ReadinessGate,
            format!("the readiness gate {gate} holds the Pod back: {state}{message}"),
            "look at the controller that sets this condition, such as that of a load balancer",
        )
    };
    pending.map(finding).collect()
}
