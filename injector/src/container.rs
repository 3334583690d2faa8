//! The containers of a Pod with their roles, probes, hooks and ports, read from the untouched JSON
//! value.

use probe::ProbeKind;
use serde_json::Value;

use crate::declared_probe::Probe;
use crate::pod;

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It must succeed before the next container starts.
    Init,
    /// An init container that keeps running, and is no proxy.
    NativeSidecar,
    /// The proxy of app-health or of a mesh.
    Proxy,
    /// An ordinary container.
    Application,
}

/// A container that Kubernetes starts with the Pod.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    pub value: &'a Value,
    /// `initContainers` or `containers`.
    pub list: &'static str,
    /// The index of the container in the list.
    pub index: usize,
    /// Empty if it is missing.
    pub name: &'a str,
    pub role: Role,
}

impl<'a> Container<'a> {
    /// Returns the containers of `spec` in the order in which they start. `is_proxy` says whether a
    /// container is a proxy.
    pub fn all(spec: &'a Value, is_proxy: impl Fn(&Value) -> bool) -> Vec<Self> {
        let is_proxy = &is_proxy;
        let of_list = |list: &'static str| {
            let elements = pod::list(spec, list).iter().enumerate();
            elements.map(move |(index, value)| {
                let is_init = list == pod::CONTAINER_LISTS[0];
                let role = match () {
                    () if is_proxy(value) => Role::Proxy,
                    () if is_init && pod::is_native_sidecar(value) => Role::NativeSidecar,
                    () if is_init => Role::Init,
                    () => Role::Application,
                };
                Self { value, list, index, name: pod::name(value), role }
            })
        };
        pod::CONTAINER_LISTS.into_iter().flat_map(of_list).collect()
    }

    /// Returns true for an init container that must end, even if it is a proxy.
    pub fn is_ordinary_init(&self) -> bool {
        self.list == pod::CONTAINER_LISTS[0] && !pod::is_native_sidecar(self.value)
    }

    /// Returns the probe or hook, if it is set.
    pub fn probe(&self, kind: ProbeKind) -> Option<Probe<'a>> {
        let parent = if kind.is_hook() { pod::field(self.value, "lifecycle")? } else { self.value };
        Some(Probe { kind, value: pod::field(parent, kind.field())? })
    }

    /// Returns the probes that are set.
    pub fn probes(&self) -> impl Iterator<Item = Probe<'a>> {
        ProbeKind::PROBES.into_iter().filter_map(|kind| self.probe(kind))
    }

    /// Returns the hooks that are set.
    pub fn hooks(&self) -> impl Iterator<Item = Probe<'a>> {
        ProbeKind::HOOKS.into_iter().filter_map(|kind| self.probe(kind))
    }

    pub fn ports(&self) -> &'a [Value] {
        pod::list(self.value, "ports")
    }

    /// Returns the port with this name.
    pub fn named_port(&self, name: &str) -> Option<&'a Value> {
        self.ports().iter().find(|port| !name.is_empty() && pod::name(port) == name)
    }

    /// Returns the number of a port: the number itself, or that of the container's port of this
    /// name.
    pub fn port_number(&self, port: &Value) -> Option<u64> {
        match port {
            Value::String(name) => self.named_port(name)?["containerPort"].as_u64(),
            number => number.as_u64(),
        }
    }
}

#[cfg(test)]
mod tests;
