//! Health of a workload where there is no kubelet: one task asks the application, again and again, and keeps the state.
//!
//! What a probe is and when the state flips is decided in `probe`; telling a control plane is somebody else's, who reads [`HealthNow`].

mod board;
mod diary;
mod exec;
pub mod group_file;
mod grpc;
mod http;
mod prober;
mod rounds;
pub mod source;
mod target;
mod tls;
mod wire;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workload_health::{HealthReason, State};

use crate::children::Children;
use crate::config::HealthConfig;
use crate::metrics::Metrics;
use crate::readiness::poller::Observer;
use diary::Diary;
use prober::Prober;
use rounds::Rounds;
use source::Source;

/// Pushes that wait for the task.
const PUSHES: usize = 4;

/// What is known of the workload now. Ages follow from the instants.
#[derive(Debug, Clone)]
pub struct HealthNow {
    /// The state.
    pub state: State,
    /// Why.
    pub reason: HealthReason,
    /// The same for people; never empty.
    pub message: String,
    /// Number of flips.
    pub generation: u64,
    /// Since when the state is what it is.
    pub since: Instant,
    /// When the last probe ended.
    pub last_probe: Option<Instant>,
    /// The probe in force, as `WorkloadProbe::to_json` has it, header values but `Host` hidden.
    pub probe: Option<Arc<Value>>,
    /// The probe's period and timeout together.
    pub interval: Option<Duration>,
    /// Before the first flip: when there is one at the latest, if nothing hinders the probes.
    pub verdict_due: Option<Instant>,
}

/// A probe from a control plane, to be answered.
#[derive(Debug)]
struct Push {
    probe: Option<Value>,
    answer: oneshot::Sender<Result<(), String>>,
}

/// The task's other side.
#[derive(Debug, Clone)]
pub struct Health {
    now: watch::Receiver<HealthNow>,
    pushes: mpsc::Sender<Push>,
    diary: Arc<Mutex<Diary>>,
}

impl Health {
    /// What is known, and every change of it.
    pub fn subscribe(&self) -> watch::Receiver<HealthNow> {
        self.now.clone()
    }

    /// Hands over `spec.probe` as a control plane has it; absent: it has none. `Err`: the text of the refusal, and the old one stays.
    /// One that is in force already changes nothing, nor does any beside a file of our own.
    pub async fn push(&self, probe: Option<Value>) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        let gone = || "the agent is terminating".to_owned();
        self.pushes.send(Push { probe, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// The answer of `GET /debug/vm-health`. `stream`: to whom it is reported, `null` for nobody.
    pub fn view(&self, stream: Value) -> Bytes {
        let now = self.now.borrow().clone();
        let diary = self.diary.lock().expect("nothing panics while it holds this lock");
        let mut view = diary.to_json(&now, Instant::now());
        view["stream"] = stream;
        view.to_string().into()
    }
}

/// Where a probe goes, and what it may do there.
#[derive(Debug, Clone)]
pub struct TargetRules {
    /// The target unless the probe names another one.
    pub instance_ip: IpAddr,
    /// Is this machine's traffic redirected into Envoy?
    pub capture: bool,
    /// Targets need not be this machine.
    pub allow_remote: bool,
}

/// Begins to probe, or to wait for a probe.
pub fn start(
    config: HealthConfig,
    observer: Arc<Observer>,
    children: Children,
    metrics: Arc<Metrics>,
) -> (Health, JoinHandle<()>) {
    let HealthConfig { group, target, rules, envoy_readiness, exec_environment } = config;
    let prober = Prober::new(target, exec_environment, children);
    let ask = move |probe: Arc<workload_health::WorkloadProbe>| {
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
    let (push, pushes) = mpsc::channel(PUSHES);
    let rounds = Rounds::new(ask, not_ready, Source::new(group, rules), pushes, phases, metrics);
    let board = rounds.board();
    let health = Health { now: board.subscribe(), pushes: push, diary: board.shared_diary() };
    (health, tokio::spawn(rounds.run()))
}
