//! `spec.resources`: what all containers of a Pod may use together, the sidecar included.

use serde_json::Value;

use super::requests::{self, Amounts};
use crate::pod;
use crate::warning::{Code, Warning};

/// Makes the Pod's own requests large enough for the added containers, within the Pod's own limits,
/// which are never changed. `original` and `changed` are the specifications before and after.
///
/// # Errors
/// Returns the warning that names the limit that is too low.
pub(super) fn fit(original: &Value, changed: &mut Value) -> Result<(), Warning> {
    let Some(resources) = pod::field(original, "resources") else { return Ok(()) };
    let amounts = |key| requests::amounts(Some(resources), key);
    let (Some(limits), Some(declared)) = (amounts("limits"), amounts("requests")) else { return Ok(()) };
    let (Some(before), Some(after)) = (requests::total(original), requests::total(changed)) else {
        return Ok(());
    };
    let defaults = requests::of_pod(original).unwrap_or_default();
    check_container_limits(changed, &limits)?;
    let mut new = Vec::new();
    for (name, needed) in &after {
        if before.get(name).is_some_and(|before| before.equals(*needed)) {
            continue;
        }
        let limit = limits.get(name);
        if let Some(limit) = limit.filter(|limit| needed.exceeds(**limit)) {
            return Err(too_low(name, *limit, &format!("the containers and the sidecar request {needed}")));
        }
        match (declared.get(name), defaults.get(name)) {
            (Some(declared), _) if !needed.exceeds(*declared) => {}
            (Some(_), _) => new.push((name.clone(), Value::from(needed.to_string()))),
            // Without the sidecar's request, the API server would set the Pod's request to its limit.
            (None, Some(_)) if !before.contains_key(name) => {
                new.push((name.clone(), resources["limits"][name].clone()));
            }
            (None, _) => {}
        }
    }
    if !new.is_empty() {
        pod::object(&mut changed["resources"], "requests").extend(new);
    }
    Ok(())
}

/// Checks that no ordinary container has a higher limit than the Pod.
fn check_container_limits(spec: &Value, limits: &Amounts) -> Result<(), Warning> {
    for container in pod::list(spec, "containers") {
        for (name, of_container) in requests::limits(container).unwrap_or_default() {
            if let Some(limit) = limits.get(&name).filter(|limit| of_container.exceeds(**limit)) {
                let text = format!("container {} has a limit of {of_container}", pod::name(container));
                return Err(too_low(&name, *limit, &text));
            }
        }
    }
    Ok(())
}

fn too_low(name: &str, limit: super::quantity::Quantity, reason: &str) -> Warning {
    let field = format!("spec.resources.limits.{name}");
    Warning::about_pod(Code::PodResources, format!("{field} = {limit}: {reason}")).at(field)
}

#[cfg(test)]
mod tests;
