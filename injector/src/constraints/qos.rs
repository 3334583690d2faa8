//! The QoS class of a Pod, which decides about exclusive CPUs and about the order of evictions.

use serde_json::Value;

use super::declared;
use super::quantity::Quantity;
use super::requests::{self, Amounts};
use crate::pod;
use crate::warning::{Code, Warning};

/// The resources that decide about the class. A sidecar in a Guaranteed Pod gets at least these
/// amounts unless the Pod or the limits of the template say otherwise: with a limit of 10m CPU, the
/// request of the built-in template, Envoy starts slowly.
const DECISIVE: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "128Mi")];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QosClass {
    Guaranteed,
    Burstable,
    BestEffort,
}

/// Returns the class of a Pod; `None` if an amount cannot be read. `without` is the name of a
/// container that does not count.
pub(super) fn class(spec: &Value, without: &str) -> Option<QosClass> {
    let mut total = (Amounts::new(), Amounts::new());
    let mut all_limited = true;
    let mut add = |requests: Amounts, limits: Amounts| {
        for (name, _) in DECISIVE {
            let positive =
                |amounts: &Amounts| amounts.get(name).copied().filter(|amount| amount.is_positive());
            for (sum, amount) in [(&mut total.0, positive(&requests)), (&mut total.1, positive(&limits))] {
                if let Some(amount) = amount {
                    let there = sum.entry(name.to_owned()).or_insert(Quantity::ZERO);
                    *there = there.plus(amount);
                }
            }
            all_limited &= positive(&limits).is_some();
        }
    };
    if let Some(resources) = pod::field(spec, "resources") {
        add(requests::of_pod(spec)?, requests::amounts(Some(resources), "limits")?);
    } else {
        let containers = ["containers", "initContainers"].into_iter().flat_map(|list| pod::list(spec, list));
        for container in containers.filter(|container| pod::name(container) != without) {
            add(requests::requests(container)?, requests::limits(container)?);
        }
    }
    let (requests, limits) = total;
    let same = |name: &str| match (requests.get(name), limits.get(name)) {
        (Some(request), Some(limit)) => request.equals(*limit),
        _ => false,
    };
    Some(match () {
        () if requests.is_empty() && limits.is_empty() => QosClass::BestEffort,
        () if all_limited && DECISIVE.iter().all(|(name, _)| same(name)) => QosClass::Guaranteed,
        () => QosClass::Burstable,
    })
}

/// Keeps a Guaranteed Pod Guaranteed: gives the added containers equal requests and limits. `added`
/// are their names.
pub(super) fn guarantee(original: &Value, changed: &mut Value, added: &[&str], sidecar: &str) {
    if pod::field(original, "resources").is_some() || class(original, sidecar) != Some(QosClass::Guaranteed) {
        return;
    }
    let declared = declared::container(original, sidecar);
    let declared = declared.and_then(|container| pod::field(container, "resources"));
    for container in pod::containers_mut(changed).filter(|container| added.contains(&pod::name(container))) {
        let declared = declared.filter(|_| pod::name(container) == sidecar);
        set_equal(container, declared);
    }
}

/// Warns if the class has changed, except from BestEffort to Burstable, which follows from any
/// request of the template.
pub(super) fn change(original: &Value, changed: &Value, sidecar: &str) -> Option<Warning> {
    let (before, after) = (class(original, sidecar)?, class(changed, "")?);
    if before == after || (before, after) == (QosClass::BestEffort, QosClass::Burstable) {
        return None;
    }
    let text = format!("spec: the QoS class changes from {before:?} to {after:?}");
    Some(Warning::about_pod(Code::Qos, text))
}

/// Sets requests and limits of a container to the same amounts. What the Pod itself declares has
/// precedence, and stays if it declares both.
fn set_equal(container: &mut Value, declared: Option<&Value>) {
    let value_of = |resources: Option<&Value>, key: &str, name: &str| -> Option<Value> {
        pod::field(pod::field(resources?, key)?, name).cloned()
    };
    for (name, least) in DECISIVE {
        let there = pod::field(container, "resources");
        let of_pod = (value_of(declared, "limits", name), value_of(declared, "requests", name));
        let amount = match of_pod {
            (Some(_), Some(_)) => continue,
            (Some(amount), None) | (None, Some(amount)) => amount,
            (None, None) => value_of(there, "limits", name).unwrap_or_else(|| {
                let request = value_of(there, "requests", name);
                let amount = request.as_ref().and_then(Quantity::read);
                let enough =
                    amount.zip(Quantity::parse(least)).is_some_and(|(own, least)| !least.exceeds(own));
                request.filter(|_| enough).unwrap_or_else(|| least.into())
            }),
        };
        if there.is_some_and(|there| !there.is_object()) {
            return;
        }
        pod::object(container, "resources");
        for key in ["requests", "limits"] {
            let amounts = pod::field(&container["resources"], key);
            if amounts.is_none_or(Value::is_object) {
                pod::object(&mut container["resources"], key).insert(name.to_owned(), amount.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
