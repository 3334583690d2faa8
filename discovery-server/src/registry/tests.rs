use std::collections::BTreeMap;

use serde_json::json;
use workload_health::{HealthReport, Report, WorkloadGroup};

use super::*;
use crate::store::PendingWrites;
use discovery::entries::{Code, Node, Record};
use discovery::objects::{Group, Key, Service};

struct World {
    handle: Handle,
    writes: PendingWrites,
    stored: mpsc::Sender<Input>,
    configured: watch::Sender<Configured>,
    closing: CancellationToken,
    task: JoinHandle<()>,
}

fn config() -> Configured {
    let document = |kind: &str, spec| {
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": {"name": "pay", "namespace": "shop"}, "spec": spec,
        })
    };
    let group = document(
        "WorkloadGroup",
        json!({"template": {"ports": {"http": 80}, "labels": {"app": "pay"}}, "probe": {"tcpSocket": {"port": 80}}}),
    );
    let group = WorkloadGroup::parse(&group).expect("a valid document").value;
    let service = document(
        "ServiceEntry",
        json!({
            "hosts": ["pay.shop"], "resolution": "STATIC", "ports": [{"number": 80, "name": "http"}],
            "workloadSelector": {"labels": {"app": "pay"}},
        }),
    );
    let service = Service::parse(&service).expect("a valid document").value;
    let key = Key::new("shop", "pay");
    Configured {
        config: Arc::new(Config {
            groups: BTreeMap::from([(key.clone(), Arc::new(Group::new(key.clone(), group)))]),
            services: BTreeMap::from([(key, Arc::new(service))]),
            ..Config::default()
        }),
        ..Configured::default()
    }
}

fn world(records: Vec<(Key, Record)>) -> World {
    let (stored, inputs) = mpsc::channel(8);
    let (_, degraded) = watch::channel(None);
    let writes = PendingWrites::default();
    let (configured, configured_receiver) = watch::channel(config());
    let store = Store {
        is_new: records.is_empty(),
        stored: records,
        writes: writes.clone(),
        inputs,
        degraded,
        isolated: watch::channel(false).1,
    };
    let parts = RegistryConfig {
        settings: Settings::default(),
        last_endpoint: LastEndpoint::Remove,
        outbound_listeners: None,
        export_namespaces: None,
        debounce: (Duration::from_millis(50), Duration::from_millis(200)),
        store,
        configured: configured_receiver,
        metrics: Arc::default(),
    };
    let closing = CancellationToken::new();
    let (handle, task) = start(parts, closing.clone());
    World { handle, writes, stored, configured, closing, task }
}

impl World {
    async fn open(&self, stream: StreamId) -> mpsc::Receiver<StreamCommand> {
        let node = Node {
            namespace: Some("shop".to_owned()),
            group: Some("pay".to_owned()),
            instance_ips: vec!["10.0.0.7".to_owned()],
            app_health: true,
            ..Node::default()
        };
        let (sender, receiver) = mpsc::channel(4);
        let peer = "10.0.0.7:4000".parse().expect("an address");
        self.handle.opened(stream, peer, None, Box::new(node), sender).await;
        receiver
    }

    async fn report(&self, stream: StreamId, generation: u64, state: workload_health::State) {
        self.send(stream, HealthReport { generation, state, ..report() }).await;
    }

    async fn send(&self, stream: StreamId, report: HealthReport) {
        self.handle.send(Input::Report { stream, report: Report::AppHealth(report) }).await;
    }

    /// Confirms the next batch of writes.
    async fn store(&self) {
        for (key, Write { sequence, .. }) in self.writes.take().await {
            self.stored.send(Input::Stored { key, write: sequence }).await.expect("the registry runs");
        }
    }
}

fn report() -> HealthReport {
    HealthReport {
        epoch: "e".to_owned(),
        generation: 0,
        state: workload_health::State::Unknown,
        reason: String::new(),
        message: String::new(),
        since_ms: 0,
        last_probe_ago_ms: None,
        interval_ms: None,
        verdict_within_ms: None,
    }
}

/// Formats all workloads as `namespace/name endpoint`.
async fn served(handle: &Handle) -> Vec<String> {
    let view = handle.view().await;
    view.workloads.iter().map(|it| format!("{}/{} {}", it.namespace, it.name, it.endpoint)).collect()
}

#[tokio::test(start_paused = true)]
async fn report_is_pushed_before_it_is_acknowledged() {
    let world = world(Vec::new());
    let mut snapshots = world.handle.snapshots();
    assert_eq!(snapshots.borrow_and_update().preserved().len(), 0);
    let mut stream = world.open(1).await;
    assert!(matches!(stream.recv().await, Some(StreamCommand::Hello { session: 1, probe: Some(_), .. })));
    world.report(1, 1, workload_health::State::Healthy).await;
    snapshots.changed().await.expect("the registry runs");
    assert_eq!(served(&world.handle).await, ["shop/pay-10.0.0.7 served"]);
    assert!(stream.try_recv().is_err(), "not stored yet");
    world.store().await;
    assert!(matches!(stream.recv().await, Some(StreamCommand::Ack { generation: 1, .. })));
    // The WorkloadGroup is deleted.
    world
        .configured
        .send_replace(Configured { errors: vec!["x.yaml: gone".to_owned()], ..Configured::default() });
    assert!(matches!(stream.recv().await, Some(StreamCommand::Hello { session: 0, .. })));
    let view = world.handle.view().await;
    assert_eq!((view.workloads, view.config_errors), (Vec::new(), vec!["x.yaml: gone".to_owned()]));
    assert_eq!(world.handle.degradations(), ["configuration: 1 errors"]);
}

#[tokio::test(start_paused = true)]
async fn empty_store_starts_the_startup_grace() {
    let world = world(Vec::new());
    let mut snapshots = world.handle.snapshots();
    assert!(snapshots.borrow_and_update().startup_grace() && world.handle.view().await.startup_grace);
    let start = Instant::now();
    while snapshots.borrow_and_update().startup_grace() {
        snapshots.changed().await.expect("the registry runs");
    }
    assert!(start.elapsed() >= Duration::from_secs(120) && !world.handle.view().await.startup_grace);
}

#[tokio::test(start_paused = true)]
async fn store_ends_after_the_registry() {
    let record = Record { controller: Some("app-health/x".to_owned()), ..Record::default() };
    let world = world(vec![(Key::new("shop", "vm"), record)]);
    assert!(!world.handle.snapshots().borrow().startup_grace());
    world.closing.cancel();
    world.task.await.expect("the task ends");
    world.stored.closed().await;
    assert_eq!(world.handle.view().await, RegistryView::default());
}

#[tokio::test(start_paused = true)]
async fn superseded_stream_is_closed() {
    let world = world(Vec::new());
    let mut old = world.open(1).await;
    let mut new = world.open(2).await;
    assert!(matches!(old.recv().await, Some(StreamCommand::Hello { session: 1, .. })));
    assert!(matches!(old.recv().await, Some(StreamCommand::Close { code: Code::Aborted, .. })));
    assert!(old.recv().await.is_none(), "no further message");
    assert!(matches!(new.recv().await, Some(StreamCommand::Hello { session: 2, .. })));
    // The end of the superseded stream has no effect.
    world.handle.send(Input::Closed { stream: 1 }).await;
    assert!(world.handle.view().await.workloads[0].agent.as_ref().is_some_and(|agent| agent.connected));
}

#[tokio::test(start_paused = true)]
async fn extreme_numbers_change_nothing() {
    let world = world(Vec::new());
    let _stream = world.open(1).await;
    let most = Some(u64::MAX);
    for state in workload_health::State::ALL {
        let absurd = HealthReport { generation: u64::MAX, state, since_ms: u64::MAX, ..report() };
        let absurd = HealthReport { last_probe_ago_ms: most, verdict_within_ms: most, ..absurd };
        world.send(1, HealthReport { interval_ms: most, ..absurd.clone() }).await;
        world.send(1, absurd).await;
    }
    tokio::time::sleep(Duration::from_secs(2 * 24 * 3600)).await;
    assert_eq!(served(&world.handle).await, ["shop/pay-10.0.0.7 removed"]);
}
