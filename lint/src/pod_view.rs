//! A Pod with what several rules need: its containers, grace period, and whether a mesh captures
//! its traffic.

use injector::pod;
use injector::workload::PodLocation;
use serde_json::Value;

use crate::Options;
use crate::finding::Place;
use crate::probe_view::{Hook, Probe};

/// The default of `terminationGracePeriodSeconds`.
const GRACE_PERIOD: u64 = 30;
/// Sidecars of service meshes.
const MESH_SIDECARS: [&str; 3] = ["istio-proxy", "linkerd-proxy", "kuma-sidecar"];
/// Labels and annotations that ask for a sidecar of a mesh, with their value.
const MESH_REQUESTS: [(&str, &str); 4] = [
    ("sidecar.istio.io/inject", "true"),
    ("linkerd.io/inject", "enabled"),
    ("kuma.io/sidecar-injection", "enabled"),
    ("kuma.io/sidecar-injection", "true"),
];

/// A Pod that the injector has accepted as well-formed.
pub(crate) struct PodView<'a> {
    pub pod: &'a Value,
    pub containers: Vec<Container<'a>>,
    /// `terminationGracePeriodSeconds`.
    pub grace_period: u64,
    /// True if a sidecar of a mesh is present or requested.
    pub meshed: bool,
    /// True if the Pod uses the network of the node.
    pub host_network: bool,
    /// True if the Pod runs until its work is done, as in a Job.
    pub completes: bool,
}

/// A container that Kubernetes starts with the Pod.
pub(crate) struct Container<'a> {
    pub value: &'a Value,
    pub list: &'static str,
    pub index: usize,
    /// Empty if it is missing.
    pub name: &'a str,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Application,
    /// Runs to completion before the next container starts.
    Init,
    /// An init container that keeps running, or the proxy of a mesh or of app-health.
    Sidecar,
}

impl<'a> PodView<'a> {
    pub(crate) fn new(location: &PodLocation, document: &'a Value, options: &Options) -> Self {
        let value = location.pod(document);
        let spec = &value["spec"];
        let proxies = MESH_SIDECARS.into_iter().chain([options.settings.sidecar_name.as_str()]);
        let proxies: Vec<&str> = proxies.collect();
        let mut containers = Vec::new();
        for list in ["initContainers", "containers"] {
            for (index, container) in pod::list(spec, list).iter().enumerate() {
                let name = pod::name(container);
                let role = match list {
                    "initContainers" if !pod::is_native_sidecar(container) => Role::Init,
                    "containers" if !proxies.contains(&name) => Role::Application,
                    _ => Role::Sidecar,
                };
                containers.push(Container { value: container, list, index, name, role });
            }
        }
        let requested = |(name, wanted): &(&str, &str)| {
            let found = [pod::label(value, name), pod::annotation(value, name)];
            found.into_iter().flatten().any(|found| found == wanted)
        };
        let meshed = containers.iter().any(|container| proxies.contains(&container.name))
            || MESH_REQUESTS.iter().any(requested);
        let restarts = matches!(pod::text(spec, "restartPolicy"), "" | "Always");
        let grace_period = spec["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_PERIOD);
        Self {
            pod: value,
            containers,
            grace_period,
            meshed,
            host_network: spec["hostNetwork"] == true,
            completes: location.job || !restarts,
        }
    }

    /// Returns the containers that run while the Pod is ready: all but ordinary init containers.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Container<'a>> {
        self.containers.iter().filter(|container| container.role != Role::Init)
    }
}

impl<'a> Container<'a> {
    /// Returns the place of the container, or of its probe or hook.
    pub(crate) fn place(&self, probe: &'static str) -> Place<'a> {
        Place { list: self.list, index: self.index, container: self.name, probe }
    }

    pub(crate) fn ports(&self) -> &'a [Value] {
        pod::list(self.value, "ports")
    }

    /// Returns the three probes that are declared, in the order of Kubernetes' documentation.
    pub(crate) fn probes(&self) -> impl Iterator<Item = Probe<'a>> {
        let value = self.value;
        ["livenessProbe", "readinessProbe", "startupProbe"]
            .into_iter()
            .filter_map(move |name| Some(Probe { name, value: pod::field(value, name)? }))
    }

    pub(crate) fn probe(&self, name: &str) -> Option<Probe<'a>> {
        self.probes().find(|probe| probe.name == name)
    }

    pub(crate) fn hooks(&self) -> impl Iterator<Item = Hook<'a>> {
        let lifecycle = pod::field(self.value, "lifecycle");
        ["postStart", "preStop"]
            .into_iter()
            .filter_map(move |name| Some(Hook { name, value: pod::field(lifecycle?, name)? }))
    }

    /// Returns the number of a port: the number itself, or that of the container's port of this
    /// name.
    pub(crate) fn port_number(&self, port: &Value) -> Option<u64> {
        match port {
            Value::String(name) => {
                self.ports().iter().find(|port| pod::name(port) == name)?["containerPort"].as_u64()
            }
            number => number.as_u64(),
        }
    }
}
