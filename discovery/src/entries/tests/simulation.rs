//! Property test with random streams, with reports that are lost, duplicated, reordered and
//! replayed, and with restarts from the stored state. In the model, the newest report of the newest
//! stream counts.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const AGENTS: u8 = 3;

#[derive(Clone, Copy, Debug)]
enum Action {
    Flip(u8),
    Reopen(u8),
    /// The agent process restarts and opens a stream.
    NewAgent(u8),
    /// An older stream of the agent ends.
    CloseOld(u8),
    Deliver(u8, prop::sample::Index),
    Duplicate(u8, prop::sample::Index),
    Lose(u8, prop::sample::Index),
    /// A report that was sent before arrives again on the current stream.
    Replay(u8, prop::sample::Index),
    Commit,
    Restart,
    Second,
}

fn action() -> impl Strategy<Value = Action> {
    let agent = || 0..AGENTS;
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => agent().prop_map(Action::Flip),
        2 => agent().prop_map(Action::Reopen),
        1 => agent().prop_map(Action::NewAgent),
        1 => agent().prop_map(Action::CloseOld),
        6 => (agent(), index()).prop_map(|(agent, index)| Action::Deliver(agent, index)),
        2 => (agent(), index()).prop_map(|(agent, index)| Action::Duplicate(agent, index)),
        1 => (agent(), index()).prop_map(|(agent, index)| Action::Lose(agent, index)),
        2 => (agent(), index()).prop_map(|(agent, index)| Action::Replay(agent, index)),
        2 => Just(Action::Commit),
        1 => Just(Action::Restart),
        1 => Just(Action::Second),
    ]
}

#[derive(Default)]
struct Agent {
    epoch: u64,
    generation: u64,
    healthy: bool,
    stream: Option<StreamId>,
    old: Vec<StreamId>,
    in_flight: Vec<HealthReport>,
    sent: Vec<HealthReport>,
    /// The newest report delivered on the current stream.
    newest: Option<HealthReport>,
    /// Health that the server must have; `None` before the first report.
    believed: Option<bool>,
}

impl Agent {
    fn send(&mut self) {
        let word = if self.healthy { "Healthy" } else { "Unhealthy" };
        let sent = report(&format!("e{}", self.epoch), &self.generation.to_string(), word);
        self.in_flight.push(sent.clone());
        self.sent.push(sent);
    }

    /// Updates the model with a report that reached the server.
    fn arrived(&mut self, report: &HealthReport) {
        let counts = self
            .newest
            .as_ref()
            .is_none_or(|newest| newest.epoch == report.epoch && report.generation > newest.generation);
        if counts {
            self.believed = Some(report.state == State::Healthy);
            self.newest = Some(report.clone());
        }
    }
}

struct World {
    case: Case,
    agents: Vec<Agent>,
    streams: StreamId,
    owners: HashMap<StreamId, usize>,
}

fn key(agent: usize) -> Key {
    Key::new("shop", format!("payments-10.0.0.{agent}"))
}

impl World {
    fn new() -> Self {
        let settings = Settings {
            report_interval: Duration::ZERO,
            restart_grace: Duration::from_secs(1000),
            heartbeat: Duration::from_secs(1000),
            peer_address_check: PeerAddressCheck::Off,
            ..Settings::default()
        };
        let mut case = Case::new(settings);
        case.word("config probe");
        case.unconfirmed = Some(Vec::new());
        let agents = (0..AGENTS).map(|_| Agent::default()).collect();
        Self { case, agents, streams: 0, owners: HashMap::new() }
    }

    fn input(&mut self, input: Input) {
        let effects = self.case.input(input);
        self.take(&effects);
    }

    /// Asserts that acknowledged reports are stored.
    fn take(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Command { stream, command: StreamCommand::Ack { epoch, generation } } = effect else {
                continue;
            };
            let agent = self.owners[stream];
            let newest = self.agents[agent].newest.as_ref().expect("a report was sent");
            assert_eq!((epoch, generation), (&newest.epoch, &newest.generation));
            let condition = self.case.disk[&key(agent)].condition.as_ref().expect("a stored condition");
            assert_eq!(Some(condition.status == Status::True), self.agents[agent].believed);
        }
    }

    fn deliver(&mut self, agent: usize, report: HealthReport) {
        let Some(stream) = self.agents[agent].stream else { return };
        self.agents[agent].arrived(&report);
        self.input(Input::Report { stream, report: Report::AppHealth(report) });
    }

    fn open(&mut self, agent: usize) {
        self.streams += 1;
        let stream = self.streams;
        self.owners.insert(stream, agent);
        let state = &mut self.agents[agent];
        state.old.extend(state.stream.replace(stream));
        state.in_flight.clear();
        state.newest = None;
        state.send();
        let Input::Opened { peer, identity, mut node, .. } =
            opened(&stream.to_string(), &["ours"], &key(agent))
        else {
            unreachable!("opened returns Input::Opened")
        };
        node.instance_ips = vec![format!("10.0.0.{agent}")];
        self.input(Input::Opened { stream, peer, identity, node });
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Flip(agent) => {
                let agent = &mut self.agents[usize::from(agent)];
                agent.healthy = !agent.healthy;
                agent.generation += 1;
                agent.send();
            }
            Action::Reopen(agent) => self.open(usize::from(agent)),
            Action::NewAgent(agent) => {
                let agent = usize::from(agent);
                self.agents[agent].epoch += 1;
                self.agents[agent].generation = 0;
                self.open(agent);
            }
            Action::CloseOld(agent) => {
                if let Some(stream) = self.agents[usize::from(agent)].old.pop() {
                    self.input(Input::Closed { stream });
                }
            }
            Action::Deliver(agent, index) | Action::Lose(agent, index) | Action::Duplicate(agent, index) => {
                let agent = usize::from(agent);
                let in_flight = &mut self.agents[agent].in_flight;
                if in_flight.is_empty() || self.agents[agent].stream.is_none() {
                    return;
                }
                let in_flight = &mut self.agents[agent].in_flight;
                let index = index.index(in_flight.len());
                match action {
                    Action::Lose(..) => drop(in_flight.remove(index)),
                    Action::Duplicate(..) => {
                        let report = in_flight[index].clone();
                        self.deliver(agent, report);
                    }
                    _ => {
                        let report = in_flight.remove(index);
                        self.deliver(agent, report);
                    }
                }
            }
            Action::Replay(agent, index) => {
                let agent = usize::from(agent);
                // A proxy could replay a report, but the agent's first report of a stream always
                // arrives first.
                if self.agents[agent].newest.is_some() {
                    let report = index.get(&self.agents[agent].sent).clone();
                    self.deliver(agent, report);
                }
            }
            Action::Commit => {
                let effects = self.case.word("store");
                self.take(&effects);
            }
            Action::Restart => self.restart(),
            Action::Second => {
                let effects = self.case.word("wait 1");
                self.take(&effects);
            }
        }
    }

    /// Restarts the server: writes that are not confirmed and all streams are lost.
    fn restart(&mut self) {
        self.case.word("restart");
        self.case.word("config probe");
        self.case.unconfirmed = Some(Vec::new());
        for (index, agent) in self.agents.iter_mut().enumerate() {
            (agent.stream, agent.newest) = (None, None);
            agent.old.clear();
            agent.in_flight.clear();
            let condition = self.case.disk.get(&key(index)).and_then(|record| record.condition.as_ref());
            agent.believed = condition
                .filter(|condition| condition.status != Status::Unknown)
                .map(|condition| condition.status == Status::True);
        }
    }

    /// Compares the served endpoints with the model.
    fn compare(&self) {
        let served: BTreeMap<Key, bool> =
            self.case.entries.workloads().map(|workload| (workload.key, workload.served)).collect();
        for (index, agent) in self.agents.iter().enumerate() {
            let found = served.get(&key(index)).copied().unwrap_or(false);
            assert_eq!(found, agent.believed == Some(true), "agent {index}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_newest_report_of_the_newest_stream_counts(actions in prop::collection::vec(action(), 1..120)) {
        let mut world = World::new();
        for action in actions {
            world.act(action);
            world.compare();
        }
        // Finally, all agents reconnect and all reports arrive.
        for agent in 0..usize::from(AGENTS) {
            world.open(agent);
            let report = world.agents[agent].in_flight.remove(0);
            world.deliver(agent, report);
        }
        world.act(Action::Commit);
        world.act(Action::Second);
        world.compare();
        for (index, agent) in world.agents.iter().enumerate() {
            prop_assert_eq!(agent.believed, Some(agent.healthy));
            let condition = world.case.disk[&key(index)].condition.clone();
            prop_assert_eq!(condition.map(|condition| condition.status == Status::True), Some(agent.healthy));
        }
    }
}
