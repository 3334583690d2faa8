//! Requests and limits of containers and Pods, with the defaults of the API server.

use std::collections::BTreeMap;

use serde_json::Value;

use super::quantity::Quantity;
use crate::pod;

/// Amounts by the name of the resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Reads `resources[key]`. Returns `None` if an amount cannot be read; the API server rejects it.
pub(super) fn amounts(resources: Option<&Value>, key: &str) -> Option<Amounts> {
    match resources.and_then(|resources| pod::field(resources, key)) {
        None => Some(Amounts::new()),
        Some(Value::Object(fields)) => {
            fields.iter().map(|(name, value)| Some((name.clone(), Quantity::read(value)?))).collect()
        }
        Some(_) => None,
    }
}

/// Returns the limits of a container.
pub(super) fn limits(container: &Value) -> Option<Amounts> {
    amounts(pod::field(container, "resources"), "limits")
}

/// Returns the requests of a container. A missing one is the limit.
pub(super) fn requests(container: &Value) -> Option<Amounts> {
    let mut requests = amounts(pod::field(container, "resources"), "requests")?;
    for (name, limit) in limits(container)? {
        requests.entry(name).or_insert(limit);
    }
    Some(requests)
}

/// Returns what the containers of a Pod request together, with which Kubernetes compares the
/// requests of the Pod. Native sidecars run beside all containers after them, ordinary init
/// containers one after the other.
pub(super) fn total(spec: &Value) -> Option<Amounts> {
    let mut running = Amounts::new();
    for container in pod::list(spec, "containers") {
        add(&mut running, &requests(container)?);
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in pod::list(spec, "initContainers") {
        let requests = requests(container)?;
        let mut phase = sidecars.clone();
        add(&mut phase, &requests);
        raise(&mut starting, &phase);
        if pod::is_native_sidecar(container) {
            add(&mut running, &requests);
            sidecars = phase;
        }
    }
    raise(&mut running, &starting);
    Some(running)
}

/// Returns the requests of `spec.resources` with the defaults of the API server: if the Pod has limits,
/// a missing request is what its containers request together, or else the limit.
pub(super) fn of_pod(spec: &Value) -> Option<Amounts> {
    let resources = pod::field(spec, "resources");
    let limits = amounts(resources, "limits")?;
    let mut requests = amounts(resources, "requests")?;
    if !limits.is_empty() {
        for (name, amount) in total(spec)?.into_iter().chain(limits) {
            requests.entry(name).or_insert(amount);
        }
    }
    Some(requests)
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let there = sum.entry(name.clone()).or_insert(Quantity::ZERO);
        *there = there.plus(*amount);
    }
}

fn raise(highest: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let there = highest.entry(name.clone()).or_insert(*amount);
        *there = there.max(*amount);
    }
}
