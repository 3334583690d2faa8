//! Types of the JSON response of `/debug/workloads`.

use serde::Serialize;

use super::entries::WorkloadView;

/// The response; `C` is the type of a client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadsResponse<C> {
    /// Name of this instance.
    pub instance: String,
    pub store: &'static str,
    /// True while agents may still reconnect after a start with an empty store.
    pub startup_grace: bool,
    pub config_errors: Vec<String>,
    /// Services in self-preservation, because too many of their machines became silent, as
    /// `namespace/name`.
    pub self_preserving_services: Vec<String>,
    /// A sentence for each exported host and port that another namespace exports too.
    pub export_conflicts: Vec<String>,
    /// A sentence for each port of a service that has no outbound listener or route.
    pub outbound_conflicts: Vec<String>,
    /// Workloads sorted by namespace and name.
    pub workloads: Vec<WorkloadView>,
    /// Streams that subscribe to clusters, endpoints, listeners or routes.
    pub clients: Vec<C>,
}

/// The part of [`WorkloadsResponse`] that the registry provides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegistryView {
    pub startup_grace: bool,
    pub config_errors: Vec<String>,
    pub self_preserving_services: Vec<String>,
    pub export_conflicts: Vec<String>,
    pub outbound_conflicts: Vec<String>,
    pub workloads: Vec<WorkloadView>,
}

/// Selects workloads. A field that is `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub namespace: Option<String>,
    /// The WorkloadGroup that the entry was registered from.
    pub group: Option<String>,
    /// Status of the condition or state of the endpoint, compared without case: `True`, `unknown`,
    /// `removed`.
    pub state: Option<String>,
}

impl Filter {
    /// Returns true if the filter matches the workload.
    pub fn matches(&self, workload: &WorkloadView) -> bool {
        let is_state = |state: &String| {
            let status = workload.condition.as_ref().map(|view| view.condition.status.to_string());
            state.eq_ignore_ascii_case(workload.endpoint)
                || status.is_some_and(|status| state.eq_ignore_ascii_case(&status))
        };
        self.namespace.as_ref().is_none_or(|namespace| *namespace == workload.namespace)
            && self.group.as_ref().is_none_or(|group| workload.group.as_ref() == Some(group))
            && self.state.as_ref().is_none_or(is_state)
    }
}
