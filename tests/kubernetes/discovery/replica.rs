//! A replica as a process, and an Envoy that is subscribed to what it serves.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use prost::Message as _;
use serde_json::json;
use tokio::runtime::Runtime;

use super::NAMESPACE;
use super::agent::Agent;
use super::stream::{CLUSTER, ENDPOINTS, Stream, node, request};
use crate::cluster::{Cluster, Process, free_port};
use crate::webhook_kit::page;

/// The only service's name on the wire.
const SERVICE: &str = "outbound|80||payments.shop.internal";

pub(crate) struct Replica {
    process: Option<Process>,
    runtime: Runtime,
    address: SocketAddr,
    monitoring: SocketAddr,
    endpoints: Arc<Mutex<BTreeSet<String>>>,
}

impl Replica {
    pub(crate) fn start(cluster: &Cluster, instance: &str, grace: Duration) -> Self {
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let (address, monitoring) = (loopback(free_port()), loopback(free_port()));
        let grace = format!("{}s", grace.as_secs());
        let process = Process::start(
            Command::new(env!("CARGO_BIN_EXE_app-health"))
                .args(["discovery", "--store", "kubernetes", "--restart-grace", "5s"])
                .args(["--plaintext-listen", &address.to_string()])
                .args(["--monitoring-address", &monitoring.to_string(), "--disconnect-grace", &grace])
                .env("KUBECONFIG", cluster.kubeconfig("discovery"))
                .env("POD_NAME", instance)
                .env("POD_NAMESPACE", super::SYSTEM),
            &cluster.folder.join(format!("{instance}.log")),
        );
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let endpoints = Arc::default();
        runtime.spawn(envoy(address, Arc::clone(&endpoints)));
        Self { process: Some(process), runtime, address, monitoring, endpoints }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.page("/healthz/ready").0 == 200
    }

    /// Status and body.
    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        page(self.monitoring, path).unwrap_or_default()
    }

    /// Addresses that an Envoy is sent to.
    pub(crate) fn endpoints(&self) -> BTreeSet<String> {
        self.endpoints.lock().expect("no panic").clone()
    }

    /// An agent registers with a group or, `group` being empty, with an entry that is there.
    pub(crate) fn connect(&self, group: &str, entry: &str, ip: &str) -> Agent {
        Agent::start(&self.runtime, self.address, group, entry, ip)
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process = None;
    }

    /// SIGTERM: its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let mut process = self.process.take().expect("it runs");
        process.signal("-TERM");
        process.wait()
    }
}

/// Subscribes to all clusters, and to the endpoints of the service, for as long as the replica lives.
async fn envoy(address: SocketAddr, endpoints: Arc<Mutex<BTreeSet<String>>>) {
    loop {
        let id = "sidecar~127.0.0.1~envoy.shop~shop.svc.cluster.local";
        let first = request(CLUSTER, Some(node(id, &json!({"NAMESPACE": NAMESPACE}))));
        let Ok(mut stream) = Stream::open(address, first).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let mut is_subscribed = false;
        while let Ok(answer) = stream.next().await {
            let is_endpoints = answer.type_url == ENDPOINTS;
            let mut acknowledgement = request(&answer.type_url, None);
            acknowledgement.version_info = answer.version_info;
            acknowledgement.response_nonce = answer.nonce;
            if is_endpoints {
                acknowledgement.resource_names = vec![SERVICE.to_owned()];
                for resource in answer.resources {
                    let assignment =
                        ClusterLoadAssignment::decode(resource.value.as_slice()).expect("endpoints");
                    *endpoints.lock().expect("no panic") = addresses(assignment);
                }
            }
            stream.send(acknowledgement);
            if !is_subscribed {
                let mut subscription = request(ENDPOINTS, None);
                subscription.resource_names = vec![SERVICE.to_owned()];
                stream.send(subscription);
                is_subscribed = true;
            }
        }
    }
}

fn addresses(assignment: ClusterLoadAssignment) -> BTreeSet<String> {
    use envoy_types::pb::envoy::config::core::v3::address::Address;
    use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
    let endpoints = assignment.endpoints.into_iter().flat_map(|locality| locality.lb_endpoints);
    let address = |identifier| match identifier {
        Some(HostIdentifier::Endpoint(endpoint)) => match endpoint.address?.address? {
            Address::SocketAddress(socket) => Some(socket.address),
            _ => None,
        },
        _ => None,
    };
    endpoints.filter_map(|endpoint| address(endpoint.host_identifier)).collect()
}
