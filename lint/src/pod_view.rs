//! A Pod with what several rules need: its containers, grace period, and whether a mesh captures
//! its traffic.

use injector::workload::PodLocation;
use injector::{Container, pod};
use serde_json::Value;

use crate::Options;

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

impl<'a> PodView<'a> {
    pub(crate) fn new(location: &PodLocation, document: &'a Value, options: &Options) -> Self {
        let value = location.pod(document);
        let spec = &value["spec"];
        let proxies = MESH_SIDECARS.into_iter().chain([options.settings.sidecar_name.as_str()]);
        let proxies: Vec<&str> = proxies.collect();
        let containers = Container::all(spec, |container| proxies.contains(&pod::name(container)));
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
        self.containers.iter().filter(|container| !container.is_ordinary_init())
    }
}
