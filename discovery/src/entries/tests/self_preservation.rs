//! Tests of endpoints that are preserved because too many machines became silent, with real snapshots.

use super::*;
use crate::objects::{ExportTo, LastEndpoint, Service, Source};
use crate::snapshot::{Snapshot, SnapshotSettings, Viewer};

/// Machines of one service, and the snapshots that they lead to.
struct Fleet {
    entries: Entries,
    settings: Settings,
    now: Duration,
    /// By how many seconds the system clock was changed.
    clock_change: i64,
    config: Arc<Config>,
    snapshot: Snapshot,
    disk: BTreeMap<Key, Record>,
    /// The streams that repeat their report each minute.
    alive: BTreeSet<StreamId>,
}

impl Fleet {
    /// Starts healthy machines with the streams 1, 2, …
    fn new(machines: u64) -> Self {
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
    fn input(&mut self, input: Input) {
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
    fn restart(&mut self) {
        self.entries = Entries::new(self.settings.clone(), self.disk.clone().into_iter().collect());
        (self.snapshot, self.now) = (Snapshot::default(), Duration::ZERO);
        self.alive.clear();
        self.input(Input::Config(self.config.clone()));
    }

    fn publish(&mut self) -> Input {
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

    fn connect(&mut self, machine: u64, stream: StreamId) {
        self.open(machine, stream, true);
        self.report(stream, "1", "Healthy");
    }

    /// Opens a stream of a machine that has not reported yet, with this project's agent or Istio's.
    fn open(&mut self, machine: u64, stream: StreamId, app_health: bool) {
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

    fn report(&mut self, stream: StreamId, generation: &str, word: &str) {
        let report = Report::AppHealth(report(&format!("e{stream}"), generation, word));
        self.input(Input::Report { stream, report });
    }

    fn close(&mut self, streams: impl IntoIterator<Item = StreamId>) {
        for stream in streams {
            self.alive.remove(&stream);
            self.input(Input::Closed { stream });
        }
    }

    fn wait(&mut self, mut seconds: u64) {
        while seconds > 60 {
            self.pass(60);
            self.alive.clone().into_iter().for_each(|stream| self.report(stream, "1", "Healthy"));
            seconds -= 60;
        }
        self.pass(seconds);
    }

    fn pass(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while let Some(due) = self.entries.next_due().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.input(Input::Tick);
        }
        self.now = until;
    }

    /// Returns the number of endpoints in Envoys, of preserved machines, and of entries.
    fn counts(&self) -> (usize, usize, usize) {
        let assignment = self.snapshot.assignment(&Viewer::default(), "outbound|80||pay.shop");
        let view = self.entries.view(self.now);
        let preserved =
            view.iter().filter(|workload| workload.self_preserved && workload.endpoint == "served");
        (assignment.expect("an assignment").endpoints().len(), preserved.count(), view.len())
    }
}

#[test]
fn lost_network_removes_no_machine() {
    let mut fleet = Fleet::new(10);
    assert_eq!(fleet.counts(), (10, 0, 10));
    // The streams are lost one after the other, as PINGs find out.
    for machine in 1..=4 {
        fleet.close([machine]);
        fleet.wait(2);
        assert_eq!(fleet.counts(), (10, 0, 10));
    }
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 4, 10));
    // Two return. The others get another window.
    fleet.connect(1, 21);
    fleet.connect(2, 22);
    assert_eq!(fleet.counts(), (10, 2, 10));
    fleet.wait(119);
    assert_eq!(fleet.counts(), (10, 2, 10));
    fleet.connect(3, 23);
    fleet.wait(2);
    assert_eq!(fleet.counts(), (9, 0, 9));
}

/// The system clock is set while machines become silent, and after that.
#[test]
fn clock_changes_release_no_machine() {
    for change in [0, 3_600, -3_600, 86_400 * 365] {
        let mut fleet = Fleet::new(10);
        for machine in 1..=4 {
            fleet.close([machine]);
            fleet.wait(5);
            fleet.clock_change += change;
            fleet.wait(5);
        }
        fleet.wait(20);
        assert_eq!(fleet.counts(), (10, 4, 10), "{change}");
        fleet.clock_change -= 2 * change;
        fleet.wait(1000);
        assert_eq!(fleet.counts(), (10, 4, 10), "{change}");
        fleet.connect(1, 21);
        fleet.connect(2, 22);
        fleet.wait(130);
        assert_eq!(fleet.counts(), (8, 0, 8), "{change}");
    }
}

#[test]
fn slow_loss_puts_removed_machines_back() {
    let mut fleet = Fleet::new(10);
    // As with an expired certificate, which ends each stream at its next heartbeat.
    for (machine, expected) in [(1, (9, 0, 10)), (2, (8, 0, 10)), (3, (10, 3, 10)), (4, (10, 4, 10))] {
        fleet.close([machine]);
        fleet.wait(15);
        assert_eq!(fleet.counts(), expected);
    }
    fleet.wait(20);
    assert_eq!(fleet.counts(), (10, 4, 10));
}

#[test]
fn single_machines_are_removed() {
    let mut fleet = Fleet::new(10);
    fleet.close([1, 2]);
    fleet.wait(11);
    assert_eq!(fleet.counts(), (8, 0, 10), "they may still be preserved");
    fleet.wait(120);
    assert_eq!(fleet.counts(), (8, 0, 8));
    // These are in another window.
    fleet.close([3, 4]);
    fleet.wait(11);
    assert_eq!(fleet.counts(), (6, 0, 8));
}

#[test]
fn explicit_reports_count_as_before() {
    let mut fleet = Fleet::new(4);
    for machine in 1..=4 {
        fleet.report(machine, "2", "Unhealthy");
    }
    assert_eq!(fleet.counts(), (0, 0, 4));
    fleet.close(1..=4);
    fleet.wait(11);
    assert_eq!(fleet.counts(), (0, 0, 0));
}

/// Ends an agent on request: it sends a final report and closes its stream.
fn end(fleet: &mut Fleet, machine: u64) {
    fleet.report(machine, "2", "Terminating");
    fleet.close([machine]);
}

/// As after an upgrade of the agents on all machines at the same time.
#[test]
fn agents_that_end_at_once_keep_their_endpoints_until_they_return() {
    let mut fleet = Fleet::new(10);
    for (machine, expected) in [(1, (9, 0, 10)), (2, (8, 0, 10)), (3, (10, 3, 10)), (4, (10, 4, 10))] {
        end(&mut fleet, machine);
        assert_eq!(fleet.counts(), expected);
    }
    (5..=10).for_each(|machine| end(&mut fleet, machine));
    fleet.wait(2);
    assert_eq!(fleet.counts(), (10, 10, 10));
    for machine in 1..=10 {
        fleet.open(machine, machine + 20, true);
        fleet.report(machine + 20, "0", "Awaiting");
        assert_eq!(fleet.counts().0, 10, "an agent that has no verdict yet keeps its endpoint");
    }
    fleet.wait(5);
    (21..=30).for_each(|stream| fleet.report(stream, "1", "Healthy"));
    assert_eq!(fleet.counts(), (10, 0, 10));
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 0, 10));
}

#[test]
fn agents_that_end_at_once_and_do_not_return_are_removed() {
    let mut fleet = Fleet::new(10);
    (1..=6).for_each(|machine| end(&mut fleet, machine));
    fleet.wait(9);
    assert_eq!(fleet.counts(), (10, 6, 10));
    fleet.wait(2);
    assert_eq!(fleet.counts(), (4, 0, 4));
}

/// A machine that was not an endpoint is none because its agent ends.
#[test]
fn unhealthy_and_draining_machines_that_end_at_once_are_removed() {
    for word in ["Unhealthy", "Draining"] {
        let mut fleet = Fleet::new(10);
        for machine in 1..=6 {
            fleet.report(machine, "2", word);
            fleet.report(machine, "3", "Terminating");
            fleet.report(machine, "4", "Terminating");
            fleet.close([machine]);
        }
        assert_eq!(fleet.counts().0, 4, "{word}");
    }
}

#[test]
fn agents_that_end_at_once_can_be_released() {
    let mut fleet = Fleet::new(10);
    (1..=6).for_each(|machine| end(&mut fleet, machine));
    fleet.input(Input::Release { namespace: None, group: None });
    assert_eq!(fleet.counts().0, 4);
}

#[test]
fn silent_agents_with_open_streams_are_preserved() {
    let mut fleet = Fleet::new(4);
    fleet.pass(1000);
    assert_eq!(fleet.counts(), (4, 4, 4));
    for machine in 1..=4 {
        fleet.report(machine, "1", "Healthy");
    }
    assert_eq!(fleet.counts(), (4, 0, 4));
}

#[test]
fn operator_releases_preserved_machines() {
    let mut fleet = Fleet::new(4);
    fleet.close(1..=4);
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (4, 4, 4));
    let release = |group: &str| Input::Release { namespace: None, group: Some(group.to_owned()) };
    fleet.input(release("orders"));
    assert_eq!(fleet.counts(), (4, 4, 4));
    fleet.input(release("payments"));
    assert_eq!(fleet.counts(), (0, 0, 0));
    fleet.connect(1, 11);
    assert_eq!(fleet.counts(), (1, 0, 1));
}

#[test]
fn preserved_machines_survive_a_restart() {
    let mut fleet = Fleet::new(4);
    fleet.close(1..=4);
    fleet.wait(1000);
    fleet.restart();
    let preserved = fleet.publish();
    fleet.input(preserved);
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (4, 4, 4));
}

/// After a restart, the others of a preserved set have the restart grace to return.
#[test]
fn restart_delays_the_release() {
    let mut fleet = Fleet::new(4);
    fleet.settings.restart_grace = Duration::from_secs(300);
    fleet.close(1..=4);
    fleet.wait(1000);
    fleet.restart();
    fleet.connect(1, 11);
    fleet.connect(2, 12);
    fleet.wait(290);
    assert_eq!(fleet.counts(), (4, 2, 4));
    fleet.wait(20);
    assert_eq!(fleet.counts().0, 2);
}

/// The window of the others ends while a restarted agent waits for its first probe result.
#[test]
fn a_machine_that_has_just_returned_is_not_released() {
    for app_health in [true, false] {
        let mut fleet = Fleet::new(10);
        fleet.close(1..=4);
        fleet.wait(1000);
        fleet.connect(1, 21);
        fleet.connect(2, 22);
        assert_eq!(fleet.counts(), (10, 2, 10));
        fleet.wait(118);
        fleet.open(3, 23, app_health);
        if app_health {
            fleet.report(23, "0", "Awaiting");
        }
        fleet.wait(4);
        assert_eq!(fleet.counts().0, 9, "of the others only 4 is released: {app_health}");
        if app_health {
            fleet.report(23, "1", "Unhealthy");
        } else {
            let report = Report::Istio { healthy: false, message: "HTTP status 503".to_owned() };
            fleet.input(Input::Report { stream: 23, report });
        }
        assert_eq!(fleet.counts().0, 8, "{app_health}");
    }
}

/// Istio's agent opens its stream again, and never reports.
#[test]
fn a_machine_that_returns_without_a_report_is_released_later() {
    let mut fleet = Fleet::new(10);
    fleet.close(1..=4);
    fleet.wait(1000);
    fleet.connect(1, 21);
    fleet.connect(2, 22);
    fleet.wait(118);
    fleet.open(3, 23, false);
    fleet.alive.remove(&23);
    fleet.wait(300);
    assert_eq!(fleet.counts().0, 8);
}

/// The times in the store are in the future after a restart.
#[test]
fn clock_set_back_before_a_restart_neither_preserves_for_ever_nor_releases() {
    for change in [-600, -86_400, -86_400 * 365] {
        let mut fleet = Fleet::new(10);
        fleet.close(1..=4);
        fleet.wait(100);
        assert_eq!(fleet.counts(), (10, 4, 10));
        fleet.clock_change = change;
        fleet.restart();
        (5..=10).for_each(|machine| fleet.connect(machine, machine + 20));
        fleet.wait(1000);
        assert_eq!(fleet.counts(), (10, 4, 10), "{change}: the same four are still silent");
        // A machine that is lost now has nothing to do with the two of them that have not returned.
        fleet.connect(1, 41);
        fleet.connect(2, 42);
        fleet.pass(20);
        fleet.close([25]);
        fleet.wait(300);
        assert_eq!(fleet.counts(), (7, 0, 7), "{change}");
    }
}

/// The others of the set become silent after the restart.
#[test]
fn clock_set_back_during_a_mass_silence() {
    let mut fleet = Fleet::new(10);
    fleet.close(1..=2);
    fleet.wait(11);
    fleet.clock_change = -86_400;
    fleet.restart();
    (5..=10).for_each(|machine| fleet.connect(machine, machine + 20));
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 4, 10));
}

#[test]
fn discovery_stopped_for_a_minute() {
    let mut fleet = Fleet::new(10);
    // It finds that all streams were closed meanwhile, and no agent can reconnect.
    fleet.now += Duration::from_secs(60);
    fleet.input(Input::ProcessResumed);
    fleet.close(1..=10);
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 10, 10));
}
