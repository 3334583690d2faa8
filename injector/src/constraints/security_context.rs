//! The security context of the Pod, which a container inherits where it sets nothing.

use serde_json::Value;

use crate::pod;
use crate::warning::{Code, Warning};

/// Returns the warning about an added container that must not run as root, but gets the user 0:
/// kubelet never starts it. `added` are the names of the added containers.
pub(super) fn check(spec: &Value, added: &[&str]) -> Result<(), Warning> {
    let of_pod = pod::field(spec, "securityContext");
    for container in pod::containers(spec).filter(|container| added.contains(&pod::name(container))) {
        let own = pod::field(container, "securityContext");
        let effective = |key: &str| {
            let own = own.and_then(|context| pod::field(context, key));
            own.or_else(|| pod::field(of_pod?, key))
        };
        if effective("runAsNonRoot").is_some_and(|value| *value == true)
            && effective("runAsUser").is_some_and(|value| *value == 0)
        {
            let inherited = own.is_none_or(|own| pod::field(own, "runAsUser").is_none());
            let parent = if inherited { "spec" } else { pod::name(container) };
            let field = format!("{parent}.securityContext.runAsUser");
            let text = format!(
                "{field} = 0: container {} has runAsNonRoot, so it would not start",
                pod::name(container)
            );
            // A container of the template is not in the document.
            let field = if inherited { &field } else { "spec" };
            return Err(Warning::about_pod(Code::SecurityContext, text).at(field));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
