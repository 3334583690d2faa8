//! A replica of the discovery server as a process, and a subscriber to the endpoints that it
//! serves.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use kit::agent::binary_of;
use kit::net;
use kit::reserved_port::ReservedPort;
use kit::vm::fleet::EdsClient;
use kubernetes_tests::{Cluster, Process, command};
use nix::sys::signal::Signal;
use tokio::runtime::Runtime;

use super::NAMESPACE;
use super::agent::Agent;
use super::api_proxy::ApiProxy;
use crate::http_get;

/// The name of the only cluster.
const SERVICE: &str = "outbound|80||payments.shop.internal";

pub(crate) struct Replica {
    process: Option<Process>,
    eds_client: EdsClient,
    /// `None` if the replica has a kubeconfig of its own.
    api_proxy: Option<ApiProxy>,
    runtime: Runtime,
    address: ReservedPort,
    monitoring: ReservedPort,
}

impl Replica {
    pub(crate) fn start(cluster: &Cluster, instance: &str, grace: Duration) -> Self {
        Self::start_with(cluster, instance, grace, None)
    }

    /// Starts a replica with a kubeconfig of its own.
    pub(crate) fn start_with(
        cluster: &Cluster,
        instance: &str,
        grace: Duration,
        kubeconfig: Option<PathBuf>,
    ) -> Self {
        let [address, monitoring] = [(); 2].map(|()| ReservedPort::new(net::loopback()));
        let grace = format!("{}s", grace.as_secs());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (api_proxy, kubeconfig) = match kubeconfig {
            Some(kubeconfig) => (None, kubeconfig),
            None => {
                let api_proxy = ApiProxy::start(&runtime, cluster.server());
                let kubeconfig = api_proxy.kubeconfig(cluster, "discovery", instance);
                (Some(api_proxy), kubeconfig)
            }
        };
        let process = Process::start(
            command(&binary_of("app-health"))
                .args(["discovery", "--store", "kubernetes", "--restart-grace", "5s"])
                // The tests remove most machines of a service at once.
                .args(["--peer-address-check", "warn", "--max-silent-percent", "100"])
                .args(["--plaintext-listen", &address.address.to_string()])
                .args(["--monitoring-address", &monitoring.address.to_string(), "--disconnect-grace", &grace])
                .env("KUBECONFIG", kubeconfig)
                .env("POD_NAME", instance)
                .env("POD_NAMESPACE", super::SYSTEM),
            &cluster.folder.join(format!("{instance}.log")),
        );
        let entered = runtime.enter();
        let eds_client = EdsClient::start(address.address, NAMESPACE, vec![SERVICE.to_owned()]);
        drop(entered);
        Self { process: Some(process), eds_client, api_proxy, runtime, address, monitoring }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.http_get("/healthz/ready").0 == 200
    }

    /// Requests a path of the monitoring port, and returns status and body.
    pub(crate) fn http_get(&self, path: &str) -> (u16, String) {
        let answer = http_get(self.monitoring.address, path);
        (answer.status, answer.text())
    }

    /// Returns the addresses of the endpoints that this replica serves to Envoy.
    pub(crate) fn endpoints(&self) -> BTreeSet<String> {
        let state = self.eds_client.state();
        state.endpoints.get(SERVICE).into_iter().flatten().map(|address| address.ip().to_string()).collect()
    }

    /// Returns the number of endpoints that were removed since the replica was started.
    pub(crate) fn removals(&self) -> usize {
        self.eds_client.state().removals.len()
    }

    /// Interrupts the network between this replica and the API server, or restores it.
    pub(crate) fn set_api_server_lost(&self, is_lost: bool) {
        self.api_proxy.as_ref().expect("no kubeconfig of its own").set_interrupted(is_lost);
    }

    /// Connects an agent that registers with a group or, if `group` is empty, with an existing
    /// entry.
    pub(crate) fn connect(&self, group: &str, entry: &str, ip: &str) -> Agent {
        Agent::start(&self.runtime, self.address.address, group, entry, ip)
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process = None;
    }

    /// Sends SIGTERM, and returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let mut process = self.process.take().expect("the replica runs");
        process.signal(Signal::SIGTERM);
        process.wait()
    }
}
