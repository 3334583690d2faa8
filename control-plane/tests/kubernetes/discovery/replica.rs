//! A replica: the brain and the Kubernetes store without the network between them and the agents.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use app_health::discovery::entries::{Effect, Entries, Input, Node, Report, Settings, Timestamp};
use app_health::discovery::store::{Write, kubernetes};
use kube::config::{KubeConfigOptions, Kubeconfig};
use probe::State;
use probe::health_report::HealthReport;
use time::OffsetDateTime;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

#[derive(Default)]
struct Seen {
    endpoints: BTreeSet<String>,
    agents: BTreeMap<u64, AgentSeen>,
    ready: bool,
}

#[derive(Clone, Default)]
struct AgentSeen {
    session: u64,
    acknowledged: Option<u64>,
    closed: Option<String>,
}

pub(crate) struct Replica {
    runtime: Option<Runtime>,
    inputs: mpsc::UnboundedSender<Input>,
    seen: Arc<Mutex<Seen>>,
}

/// A scripted agent on one stream.
pub(crate) struct Agent {
    stream: u64,
    inputs: mpsc::UnboundedSender<Input>,
    seen: Arc<Mutex<Seen>>,
    generation: AtomicU64,
}

static STREAMS: AtomicU64 = AtomicU64::new(1);

impl Replica {
    pub(crate) fn start(instance: &str, kubeconfig: &Path, grace: Duration) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (inputs, received) = mpsc::unbounded_channel();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let settings = Settings {
            instance: instance.to_owned(),
            shared: true,
            disconnect_grace: grace,
            restart_grace: Duration::from_secs(5),
            probe_time_write: Some(Duration::from_secs(600)),
            ..Settings::default()
        };
        let config = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        runtime.spawn(run(settings, config, received, seen.clone()));
        Self { runtime: Some(runtime), inputs, seen }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.seen.lock().expect("no panic").ready
    }

    /// Addresses that Envoys are sent to.
    pub(crate) fn endpoints(&self) -> BTreeSet<String> {
        self.seen.lock().expect("no panic").endpoints.clone()
    }

    /// An agent registers with a group or, `group` being empty, with an entry that is there.
    pub(crate) fn connect(&self, group: &str, entry: &str, ip: &str) -> Agent {
        let stream = STREAMS.fetch_add(1, Ordering::Relaxed);
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let node = Node {
            id: format!("sidecar~{ip}~vm.shop~shop.svc.cluster.local"),
            namespace: Some(super::NAMESPACE.to_owned()),
            service_account: Some("default".to_owned()),
            instance_ips: vec![ip.to_owned()],
            group: some(group),
            workload_entry: some(entry),
            app_health: true,
            ..Node::default()
        };
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        self.inputs
            .send(Input::Opened { stream, peer, identity: None, node: Box::new(node) })
            .expect("it runs");
        Agent { stream, inputs: self.inputs.clone(), seen: self.seen.clone(), generation: AtomicU64::new(0) }
    }

    /// Ends it without a word.
    pub(crate) fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Agent {
    /// Reports a flip: its generation.
    pub(crate) fn report(&self, is_healthy: bool) -> u64 {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let report = HealthReport {
            epoch: format!("e{}", self.stream),
            generation,
            state: if is_healthy { State::Healthy } else { State::Unhealthy },
            reason: if is_healthy { "ProbeSucceeded" } else { "HttpStatus" }.to_owned(),
            message: if is_healthy { "" } else { "HTTP status 503" }.to_owned(),
            since_ms: 0,
            last_probe_ago_ms: Some(0),
            interval_ms: None,
            verdict_within_ms: None,
        };
        let report = Report::AppHealth(report);
        self.inputs.send(Input::Report { stream: self.stream, report }).expect("it runs");
        generation
    }

    fn seen(&self) -> AgentSeen {
        self.seen.lock().expect("no panic").agents.get(&self.stream).cloned().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> u64 {
        self.seen().session
    }

    /// The newest generation that is stored.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        self.seen().acknowledged
    }

    /// Why the server ended the stream.
    pub(crate) fn closed(&self) -> Option<String> {
        self.seen().closed
    }

    pub(crate) fn close(self) {
        let _ = self.inputs.send(Input::Closed { stream: self.stream });
    }
}

async fn run(
    settings: Settings,
    kubeconfig: Kubeconfig,
    mut received: mpsc::UnboundedReceiver<Input>,
    seen: Arc<Mutex<Seen>>,
) {
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    let client = kube::Client::try_from(config).expect("a client");
    let store = kubernetes::Settings {
        instance: settings.instance.clone(),
        namespace: super::SYSTEM.to_owned(),
        namespaces: Vec::new(),
        per_second: 50.try_into().expect("not 0"),
    };
    let kubernetes::Opened { mut store, mut configured, .. } =
        kubernetes::open(client, store, Arc::default()).await;
    let begin = Instant::now();
    let mut entries = Entries::new(settings, store.stored);
    configured.mark_changed();
    seen.lock().expect("no panic").ready = true;
    loop {
        let due = entries.next_due().map(|due| begin + due);
        let input = tokio::select! {
            Some(input) = store.inputs.recv() => input,
            Ok(()) = configured.changed() => Input::Config(configured.borrow_and_update().config.clone()),
            Some(input) = received.recv() => input,
            () = sleep_until(due.unwrap_or(begin)), if due.is_some() => Input::Tick,
        };
        let wall = Timestamp::from_seconds(OffsetDateTime::now_utc().unix_timestamp());
        let effects = entries.step(begin.elapsed(), wall, input);
        let mut seen = seen.lock().expect("no panic");
        for effect in effects {
            match effect {
                Effect::Hello { stream, session, .. } => {
                    seen.agents.entry(stream).or_default().session = session;
                }
                Effect::Ack { stream, generation, .. } => {
                    seen.agents.entry(stream).or_default().acknowledged = Some(generation);
                }
                Effect::Close { stream, text, .. } => {
                    seen.agents.entry(stream).or_default().closed = Some(text);
                }
                Effect::Write { key, write, record, session } => {
                    store.writes.push(key, Write { write, record, session });
                }
                Effect::Changed { .. } | Effect::Note(_) => {}
            }
        }
        let served = entries.workloads().filter(|workload| workload.served);
        seen.endpoints = served.map(|workload| workload.spec.address.clone()).collect();
    }
}
