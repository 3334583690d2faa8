//! The resources that a Pod declares for its sidecar, merged with those of the template.

use serde_json::Value;

use super::requests;
use crate::pod;

/// Returns the container `name`.
pub(super) fn container<'a>(spec: &'a Value, name: &str) -> Option<&'a Value> {
    pod::containers(spec).find(|container| pod::name(container) == name)
}

/// Makes no request of the sidecar higher than its limit, which Kubernetes rejects: if the Pod declares
/// only one of both, the template's value of the other one becomes equal to it.
pub(super) fn fit(original: &Value, changed: &mut Value, sidecar: &str) {
    let Some(declared) = container(original, sidecar) else { return };
    let amounts = |container: &Value, key| requests::amounts(pod::field(container, "resources"), key);
    let (Some(declared_requests), Some(declared_limits)) =
        (amounts(declared, "requests"), amounts(declared, "limits"))
    else {
        return;
    };
    let Some(merged) = container(changed, sidecar) else { return };
    let (Some(requests), Some(limits)) = (amounts(merged, "requests"), amounts(merged, "limits")) else {
        return;
    };
    let exceeding = requests
        .iter()
        .filter(|(name, request)| limits.get(*name).is_some_and(|limit| request.exceeds(*limit)));
    let mut new = Vec::new();
    for (name, _) in exceeding {
        let (from, to) = match (declared_requests.contains_key(name), declared_limits.contains_key(name)) {
            (false, true) => ("limits", "requests"),
            (true, false) => ("requests", "limits"),
            _ => continue,
        };
        new.push((to, name.clone(), merged["resources"][from][name].clone()));
    }
    for container in pod::containers_mut(changed).filter(|container| pod::name(container) == sidecar) {
        for (key, name, amount) in &new {
            container["resources"][*key][name] = amount.clone();
        }
    }
}

#[cfg(test)]
mod tests;
