//! Health checks of a workload on a virtual machine, where no kubelet runs. One task probes the
//! application periodically and keeps its health state.
//!
//! The crate `workload-health` defines the probe and decides when the state changes. The module
//! `report` reads [`HealthSnapshot`] and reports it to a control plane.

mod exec;
pub mod group_file;
mod grpc;
mod history;
mod http;
mod probe_loop;
mod prober;
mod publisher;
pub mod source;
mod target;
mod tls;
mod workload_table;

use std::ffi::OsString;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use serving::page::Table;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workload_health::WorkloadProbe;
pub use workload_health::reporter::HealthStatus;

use agent_state::awaited_pids::AwaitedPids;
use agent_state::metrics::Metrics;
use agent_state::state::AgentState;
use group_file::WorkloadGroupFile;
use history::History;
use probe_loop::ProbeLoop;
use prober::Prober;
use source::{LocalRules, ProbeSource};

/// Capacity of the queue of pushed probes.
const PUSH_QUEUE: usize = 4;

/// The current health of the workload, as the probe loop publishes it. Times count from the agent's
/// start, see [`HealthHandle::started`].
#[derive(Debug)]
pub struct HealthSnapshot {
    pub status: HealthStatus,
    /// The probe in force, in the format of `WorkloadProbe::to_json`; all header values except
    /// `Host` are redacted.
    pub probe: Option<Value>,
    history: History,
}

/// A probe pushed by a control plane, with a channel for the result.
#[derive(Debug)]
struct PushedProbe {
    probe: Option<Value>,
    result: oneshot::Sender<Result<(), String>>,
}

/// Handle to the probing task.
#[derive(Debug, Clone)]
pub struct HealthHandle {
    snapshots: watch::Receiver<HealthSnapshot>,
    pushes: mpsc::Sender<PushedProbe>,
    started: Instant,
}

impl HealthHandle {
    /// Returns a receiver of the current health and of every change.
    pub fn subscribe(&self) -> watch::Receiver<HealthSnapshot> {
        self.snapshots.clone()
    }

    /// Returns the start of the agent, from which the times of a snapshot count.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Applies `spec.probe` as pushed by a control plane; `None` means that the control plane has
    /// no probe. Returns the reason if the probe is rejected; the previous probe then stays in
    /// force. A probe that is already in force changes nothing, and with `--workload-group` all
    /// pushed probes are ignored.
    pub async fn push(&self, probe: Option<Value>) -> Result<(), String> {
        let (result, received) = oneshot::channel();
        let gone = || "the agent is terminating".to_owned();
        self.pushes.send(PushedProbe { probe, result }).await.map_err(|_| gone())?;
        received.await.map_err(|_| gone())?
    }

    /// Returns the table of the status page about the workload.
    pub fn table(&self) -> Table {
        workload_table::workload_table(&self.snapshots.borrow())
    }

    /// Returns the response body of `GET /debug/vm-health`. `stream` describes the connection to
    /// the discovery server, `null` if none is configured.
    pub fn view(&self, stream: &Value) -> Bytes {
        self.snapshots.borrow().to_json(self.started.elapsed(), stream).to_string().into()
    }
}

/// Configuration of the probing task.
#[derive(Debug, Clone)]
pub struct HealthConfig {
    /// The WorkloadGroup file that contains the probe; if `None`, a control plane may push a probe.
    pub group: Option<WorkloadGroupFile>,
    /// A probe that does not change; set only without `group`.
    pub probe: Option<WorkloadProbe>,
    /// False if nobody learns of the health, so that its changes are not logged.
    pub is_reported: bool,
    pub target: TargetRules,
    pub rules: LocalRules,
    /// True if the workload is healthy only while Envoy is ready.
    pub envoy_readiness: bool,
    /// Environment of exec probes: names and values.
    pub exec_environment: Vec<(&'static str, OsString)>,
}

impl HealthConfig {
    /// Returns true if there is a probe, or a file that may get one.
    pub fn has_probe(&self) -> bool {
        self.group.is_some() || self.probe.is_some()
    }
}

/// Which addresses a probe may connect to, and from which source address.
#[derive(Debug, Clone)]
pub struct TargetRules {
    /// The target of probes that do not name a host.
    pub instance_ip: IpAddr,
    /// True if iptables rules redirect this machine's traffic into Envoy.
    pub capture: bool,
    /// True if probes may connect to other machines.
    pub allow_remote: bool,
}

/// Runs one probe, which is not of the kind exec, for the tests of what an application may answer.
pub async fn probe_once(
    rules: TargetRules,
    probe: &workload_health::WorkloadProbe,
) -> workload_health::Outcome {
    Prober::new(rules, Vec::new(), AwaitedPids::default()).probe(probe).await
}

/// Starts the probing task. Without a probe it waits until one is pushed.
pub fn start(
    config: HealthConfig,
    observer: Arc<AgentState>,
    awaited_pids: AwaitedPids,
    metrics: Arc<Metrics>,
) -> (HealthHandle, JoinHandle<()>) {
    let HealthConfig { group, probe, is_reported, target, rules, envoy_readiness, exec_environment } = config;
    let prober = Prober::new(target, exec_environment, awaited_pids);
    let run_probe = move |probe: Arc<workload_health::WorkloadProbe>| {
        let prober = prober.clone();
        async move { prober.probe(&probe).await }
    };
    let phases = observer.subscribe();
    let snapshots = observer.subscribe();
    let not_ready = move || {
        let snapshot = snapshots.borrow();
        let reasons: Vec<&str> = snapshot.pending.iter().map(|pending| pending.reason.as_str()).collect();
        (envoy_readiness && !snapshot.is_ready()).then(|| reasons.join(", "))
    };
    let (push, pushes) = mpsc::channel(PUSH_QUEUE);
    let source = match probe {
        Some(probe) => ProbeSource::fixed(probe, rules),
        None => ProbeSource::new(group, rules),
    };
    let probe_loop = ProbeLoop::new(run_probe, not_ready, source, pushes, phases, metrics, is_reported);
    let health = HealthHandle {
        snapshots: probe_loop.publisher.subscribe(),
        pushes: push,
        started: probe_loop.started,
    };
    (health, tokio::spawn(probe_loop.run()))
}
