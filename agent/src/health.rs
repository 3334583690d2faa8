//! Health checks of a workload on a virtual machine, where no kubelet runs. One task probes the
//! application periodically and keeps its health state.
//!
//! The crate `probe` defines probes and decides when the state changes. The module `report` reads
//! [`HealthSnapshot`] and reports it to a control plane.

mod exec;
pub mod group_file;
mod grpc;
mod history;
mod http;
mod http_exchange;
mod probe_loop;
mod prober;
mod publisher;
pub mod source;
mod target;
mod tls;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workload_health::{HealthReason, State};

use crate::awaited_pids::AwaitedPids;
use crate::config::HealthConfig;
use crate::metrics::Metrics;
use crate::state::AgentState;
use history::History;
use probe_loop::ProbeLoop;
use prober::Prober;
use source::ProbeSource;

/// Capacity of the queue of pushed probes.
const PUSH_QUEUE: usize = 4;

/// The current health of the workload.
#[derive(Debug, Clone)]
pub struct HealthSnapshot {
    pub state: State,
    pub reason: HealthReason,
    /// Human-readable form of `reason`; never empty.
    pub message: String,
    /// Number of state transitions so far.
    pub generation: u64,
    /// When `state` last changed.
    pub since: Instant,
    /// When the last probe ended.
    pub last_probe: Option<Instant>,
    /// The probe in force, in the format of `WorkloadProbe::to_json`; all header values except
    /// `Host` are redacted.
    pub probe: Option<Arc<Value>>,
    /// Sum of the probe's period and timeout.
    pub interval: Option<Duration>,
    /// Latest time of the first state transition, provided that probes can run; `None` once it has
    /// happened.
    pub verdict_due: Option<Instant>,
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
    now: watch::Receiver<HealthSnapshot>,
    pushes: mpsc::Sender<PushedProbe>,
    history: Arc<Mutex<History>>,
}

impl HealthHandle {
    /// Returns a receiver of the current health and of every change.
    pub fn subscribe(&self) -> watch::Receiver<HealthSnapshot> {
        self.now.clone()
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

    /// Returns the response body of `GET /debug/vm-health`. `stream` describes the connection to
    /// the discovery server, `null` if none is configured.
    pub fn view(&self, stream: Value) -> Bytes {
        let now = self.now.borrow().clone();
        let history = self.history.lock().expect("nothing panics while it holds this lock");
        let mut view = history.to_json(&now, Instant::now());
        view["stream"] = stream;
        view.to_string().into()
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

/// Starts the probing task. Without a probe it waits until one is pushed.
pub fn start(
    config: HealthConfig,
    observer: Arc<AgentState>,
    awaited_pids: AwaitedPids,
    metrics: Arc<Metrics>,
) -> (HealthHandle, JoinHandle<()>) {
    let HealthConfig { group, target, rules, envoy_readiness, exec_environment } = config;
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
    let probe_loop =
        ProbeLoop::new(run_probe, not_ready, ProbeSource::new(group, rules), pushes, phases, metrics);
    let publisher = probe_loop.publisher();
    let health =
        HealthHandle { now: publisher.subscribe(), pushes: push, history: publisher.shared_history() };
    (health, tokio::spawn(probe_loop.run()))
}
