//! Machines of one service, for tests of what happens to many of them at once.

use super::*;
use crate::objects::{ExportTo, LastEndpoint, Service, Source};
use crate::snapshot::{Snapshot, SnapshotSettings, Viewer};

/// Machines of one service, and the snapshots that they lead to.
pub(super) struct Fleet {
    entries: Entries,
    pub(super) settings: Settings,
    pub(super) now: Duration,
    /// By how many seconds the system clock was changed.
    pub(super) clock_change: i64,
    config: Arc<Config>,
    snapshot: Snapshot,
    disk: BTreeMap<Key, Record>,
    /// The streams that repeat their report each minute.
    pub(super) alive: BTreeSet<StreamId>,
}

impl Fleet {
    /// Starts healthy machines with the streams 1, 2, …
    pub(super) fn new(machines: u64) -> Self {
        let mut config = config("probe");
        let key = Key::new("shop", "pay");
        let port = crate::objects::Port {
            number: 80,
            name: "http".to_owned(),
            protocol: crate::objects::Protocol::Http,
            target_port: None,
        };
        let service = Service {
            key: key.clone(),
            hosts: vec!["pay.shop".to_owned()],
            ports: vec![port],
            source: Source::Selector(BTreeMap::from([("app".to_owned(), "payments".to_owned())])),
            export_to: ExportTo::All,
            created: None,
            last_endpoint: None,
        };
        config.services.insert(key, Arc::new(service));
        let mut fleet = Self {
            entries: Entries::new(settings(), Vec::new()),
            settings: settings(),
            now: Duration::ZERO,
            clock_change: 0,
            config: Arc::new(config),
            snapshot: Snapshot::default(),
            disk: BTreeMap::new(),
            alive: BTreeSet::new(),
        };
        fleet.input(Input::Config(fleet.config.clone()));
        (1..=machines).for_each(|machine| fleet.connect(machine, machine));
        fleet.wait(100);
        fleet
    }

    fn wall(&self) -> Timestamp {
        let now = i64::try_from(self.now.as_secs()).expect("small");
        Timestamp::from_seconds(START + self.clock_change + now)
    }

    /// Passes an input, and publishes until nothing changes.
    pub(super) fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let effects = self.entries.step(self.now, self.wall(), input);
            for effect in &effects {
                if let Effect::Write { key, record, .. } = effect {
                    match record {
                        Some(record) => drop(self.disk.insert(key.clone(), (**record).clone())),
                        None => drop(self.disk.remove(key)),
                    }
                }
            }
            if effects.iter().any(|effect| matches!(effect, Effect::Changed { .. })) {
                inputs.push(self.publish());
            }
        }
    }

    /// Restarts discovery at the system clock's time of the first start.
    pub(super) fn restart(&mut self) {
        self.entries = Entries::new(self.settings.clone(), self.disk.clone().into_iter().collect());
        (self.snapshot, self.now) = (Snapshot::default(), Duration::ZERO);
        self.alive.clear();
        self.input(Input::Config(self.config.clone()));
    }

    pub(super) fn publish(&mut self) -> Input {
        let settings = SnapshotSettings {
            last_endpoint: LastEndpoint::Remove,
            startup_grace: false,
            outbound_listeners: None,
            removal_limits: self.settings.removal_limits(),
            now: self.entries.steady_time(self.now, self.wall()),
        };
        let mut workloads = self.entries.workloads();
        self.snapshot = Snapshot::build(&self.config, &mut workloads, settings, Some(&self.snapshot));
        Input::Preserved(self.snapshot.preserved().clone())
    }

    pub(super) fn connect(&mut self, machine: u64, stream: StreamId) {
        self.open(machine, stream, true);
        self.report(stream, "1", "Healthy");
    }

    /// Opens a stream of a machine that has not reported yet, with this project's agent or Istio's.
    pub(super) fn open(&mut self, machine: u64, stream: StreamId, app_health: bool) {
        let address = format!("10.0.0.{machine}");
        let node = Node {
            namespace: Some("shop".to_owned()),
            group: Some("payments".to_owned()),
            instance_ips: vec![address.clone()],
            app_health,
            ..Node::default()
        };
        let peer = format!("{address}:4000").parse().expect("an address");
        self.input(Input::Opened { stream, peer, identity: None, node: Box::new(node) });
        self.alive.insert(stream);
    }

    pub(super) fn report(&mut self, stream: StreamId, generation: &str, word: &str) {
        let report = Report::AppHealth(report(&format!("e{stream}"), generation, word));
        self.input(Input::Report { stream, report });
    }

    pub(super) fn close(&mut self, streams: impl IntoIterator<Item = StreamId>) {
        for stream in streams {
            self.alive.remove(&stream);
            self.input(Input::Closed { stream });
        }
    }

    pub(super) fn wait(&mut self, mut seconds: u64) {
        while seconds > 60 {
            self.pass(60);
            self.alive.clone().into_iter().for_each(|stream| self.report(stream, "1", "Healthy"));
            seconds -= 60;
        }
        self.pass(seconds);
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while let Some(due) = self.entries.next_due().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.input(Input::Tick);
        }
        self.now = until;
    }

    /// Returns the number of endpoints in Envoys, of preserved machines, and of entries.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let assignment = self.snapshot.assignment(&Viewer::default(), "outbound|80||pay.shop");
        let view = self.entries.view(self.now);
        let preserved =
            view.iter().filter(|workload| workload.self_preserved && workload.endpoint == "served");
        (assignment.expect("an assignment").endpoints().len(), preserved.count(), view.len())
    }
}
