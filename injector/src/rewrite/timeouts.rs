//! Timeouts of probes that Istio's injector has rewritten.

use std::collections::BTreeMap;

use probe::ProbePath;
use serde_json::Value;

use super::plan::Sidecar;
use super::summary::{ProbeResult, ProbeSummary};
use super::{RewriteResult, handler, probers_env};
use crate::container::{Container, Role};
use crate::pod;

/// Gives kubelet a second more than the agent for each probe that targets its own entry in the table of
/// the sidecar `name`. Nothing else is changed: a table that cannot be read, and a probe without an entry,
/// are left to Istio's injector.
pub(crate) fn raise_timeouts(pod: &mut Value, name: &str) -> RewriteResult {
    let containers = Container::all(&pod["spec"], |container| pod::name(container) == name);
    let table = Sidecar::find(&containers)
        .and_then(|sidecar| probers_env(&pod["spec"][sidecar.list][sidecar.index]).ok().flatten())
        .map(str::to_owned);
    let entries: BTreeMap<String, Value> =
        table.as_deref().and_then(|table| serde_json::from_str(table).ok()).unwrap_or_default();
    let mut changes = Vec::new();
    let mut probes = Vec::new();
    for container in containers.iter().filter(|container| container.role != Role::Proxy) {
        for probe in container.probes() {
            let Some(Ok(declared)) = handler::declared(probe) else { continue };
            let Some(path) = ProbePath::new(container.name, probe.kind) else { continue };
            let key = path.to_string();
            let Some(entry) = entries.get(&key).filter(|_| declared.is_rewritten_to(&key)) else { continue };
            let needed = handler::kubelet_timeout(&handler::timeout(entry));
            let result = if handler::timeout(probe.value).as_u64() < needed.as_u64() {
                changes.push((container.list, container.index, probe.kind.field(), needed));
                ProbeResult::Rewritten
            } else {
                ProbeResult::AlreadyRewritten
            };
            let (container, word) = (container.name.to_owned(), probe.kind.word().to_owned());
            probes.push(ProbeSummary { container, word, handler: declared.kind.name(), result, code: None });
        }
    }
    for (list, index, field, timeout) in changes {
        pod["spec"][list][index][field]["timeoutSeconds"] = timeout;
    }
    RewriteResult { table, probes, warnings: Vec::new() }
}
