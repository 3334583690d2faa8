//! What the operator sees: the JSON of `/debug/workloads`.

use serde::Serialize;

use super::entries::WorkloadView;

/// Everything; `C` is a client's line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View<C> {
    /// This process.
    pub instance: String,
    /// `redb` or `kubernetes`.
    pub store: &'static str,
    /// Whether the absent are not missed yet, after a start with an empty store.
    pub settling: bool,
    /// A line each.
    pub config_errors: Vec<String>,
    /// By namespace and name.
    pub workloads: Vec<WorkloadView>,
    /// Who subscribes to what.
    pub clients: Vec<C>,
}

/// What the registry knows of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// As in [`View`].
    pub settling: bool,
    /// As in [`View`].
    pub config_errors: Vec<String>,
    /// As in [`View`].
    pub workloads: Vec<WorkloadView>,
}

/// Which workloads are asked for; empty: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The entry's namespace.
    pub namespace: Option<String>,
    /// The group that it was made from.
    pub group: Option<String>,
    /// The condition's status or the endpoint, in any case: `True`, `unknown`, `removed`.
    pub state: Option<String>,
}

impl Filter {
    /// Whether a workload is asked for.
    pub fn takes(&self, workload: &WorkloadView) -> bool {
        let is_state = |state: &String| {
            let status = workload.condition.as_ref().map(|condition| condition.status.as_str());
            state.eq_ignore_ascii_case(workload.endpoint)
                || status.is_some_and(|status| state.eq_ignore_ascii_case(status))
        };
        self.namespace.as_ref().is_none_or(|namespace| *namespace == workload.namespace)
            && self.group.as_ref().is_none_or(|group| workload.group.as_ref() == Some(group))
            && self.state.as_ref().is_none_or(is_state)
    }
}
