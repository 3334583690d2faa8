//! Property test of two instances that share a store with compare-and-swap, with agents that move
//! between them and delayed watch events. Finally, both instances agree with the agents.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const AGENTS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Action {
    /// The agent opens a stream at an instance and reports its state; its old stream may stay open.
    Move(usize, usize),
    CloseOld(usize),
    Flip(usize),
    /// The oldest write of the instance reaches the store.
    Write(usize),
    /// The oldest watch event of the store reaches the instance.
    News(usize),
    Second,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        2 => (0..AGENTS, 0..2_usize).prop_map(|(agent, instance)| Action::Move(agent, instance)),
        1 => (0..AGENTS).prop_map(Action::CloseOld),
        3 => (0..AGENTS).prop_map(Action::Flip),
        4 => (0..2_usize).prop_map(Action::Write),
        4 => (0..2_usize).prop_map(Action::News),
        1 => Just(Action::Second),
    ]
}

/// An instance, and the versions that it has seen in the store.
struct Instance {
    entries: Entries,
    writes: VecDeque<(Key, u64, Option<Record>)>,
    news: VecDeque<Key>,
    known: BTreeMap<Key, u64>,
}

#[derive(Default)]
struct Agent {
    healthy: bool,
    generation: u64,
    at: Option<(usize, StreamId)>,
    old: Vec<(usize, StreamId)>,
    /// The instance that has closed its stream, to which it connects again.
    lost: Option<usize>,
}

struct World {
    instances: Vec<Instance>,
    /// The version is incremented even when the record is deleted.
    store: BTreeMap<Key, (u64, Option<Record>)>,
    agents: Vec<Agent>,
    streams: StreamId,
    now: Duration,
}

fn key(agent: usize) -> Key {
    Key::new("shop", format!("payments-10.0.0.{agent}"))
}

impl World {
    fn new() -> Self {
        let instance = |name: &str| {
            let settings = Settings {
                instance: name.to_owned(),
                shared: true,
                report_interval: Duration::ZERO,
                peer_address_check: PeerAddressCheck::Off,
                ..settings()
            };
            let entries = Entries::new(settings, Vec::new());
            Instance { entries, writes: VecDeque::new(), news: VecDeque::new(), known: BTreeMap::new() }
        };
        let mut world = Self {
            instances: vec![instance("a"), instance("b")],
            store: BTreeMap::new(),
            agents: (0..AGENTS).map(|_| Agent::default()).collect(),
            streams: 0,
            now: Duration::ZERO,
        };
        for instance in 0..2 {
            world.input(instance, Input::Config(Arc::new(config("probe"))));
            let alive = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
            world.input(instance, Input::Replicas { alive, released: BTreeSet::new() });
        }
        world
    }

    fn input(&mut self, number: usize, input: Input) {
        let wall = Timestamp::from_seconds(START);
        let instance = &mut self.instances[number];
        for effect in instance.entries.step(self.now, wall, input) {
            match effect {
                Effect::Write { key, write, record, .. } => {
                    // Only the newest write of an entry is kept.
                    instance.writes.retain(|(other, ..)| *other != key);
                    instance.writes.push_back((key, write, record.map(|record| *record)));
                }
                Effect::Command { stream, command: StreamCommand::Close { .. } } => {
                    let is_its = |agent: &&mut Agent| agent.at == Some((number, stream));
                    if let Some(agent) = self.agents.iter_mut().find(is_its) {
                        (agent.at, agent.lost) = (None, Some(number));
                    }
                }
                _ => {}
            }
        }
    }

    fn write(&mut self, instance: usize) {
        let Some((key, write, record)) = self.instances[instance].writes.pop_front() else { return };
        let known = self.instances[instance].known.get(&key).copied().unwrap_or_default();
        let (version, stored) = self.store.entry(key.clone()).or_default();
        if *version != known {
            let (version, stored) = (*version, stored.clone());
            self.instances[instance].known.insert(key.clone(), version);
            return self.input(instance, Input::Observed { key, record: stored.map(Box::new) });
        }
        (*version, *stored) = (known + 1, record);
        self.instances[instance].known.insert(key.clone(), known + 1);
        self.instances[1 - instance].news.push_back(key.clone());
        self.input(instance, Input::Stored { key, write });
    }

    fn news(&mut self, instance: usize) {
        let Some(key) = self.instances[instance].news.pop_front() else { return };
        let (version, stored) = self.store[&key].clone();
        let known = self.instances[instance].known.insert(key.clone(), version).unwrap_or_default();
        if known < version {
            self.input(instance, Input::Observed { key, record: stored.map(Box::new) });
        }
    }

    fn say(&mut self, agent: usize) {
        let Some((instance, stream)) = self.agents[agent].at else { return };
        let word = if self.agents[agent].healthy { "Healthy" } else { "Unhealthy" };
        let report = report("e", &self.agents[agent].generation.to_string(), word);
        self.input(instance, Input::Report { stream, report: Report::AppHealth(report) });
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Move(agent, instance) => {
                self.streams += 1;
                let stream = self.streams;
                self.agents[agent].lost = None;
                let old = self.agents[agent].at.replace((instance, stream));
                self.agents[agent].old.extend(old);
                let Input::Opened { peer, identity, mut node, .. } =
                    opened(&stream.to_string(), &["ours"], &key(agent))
                else {
                    unreachable!("opened returns Input::Opened")
                };
                node.instance_ips = vec![format!("10.0.0.{agent}")];
                self.input(instance, Input::Opened { stream, peer, identity, node });
                self.say(agent);
            }
            Action::CloseOld(agent) => {
                if let Some((instance, stream)) = self.agents[agent].old.pop() {
                    self.input(instance, Input::Closed { stream });
                }
            }
            Action::Flip(agent) => {
                self.agents[agent].healthy ^= true;
                self.agents[agent].generation += 1;
                self.say(agent);
            }
            Action::Write(instance) => self.write(instance),
            Action::News(instance) => self.news(instance),
            Action::Second => {
                self.now += Duration::from_secs(1);
                (0..2).for_each(|instance| self.input(instance, Input::Tick));
                for agent in 0..AGENTS {
                    if let Some(instance) = self.agents[agent].lost {
                        self.act(Action::Move(agent, instance));
                    }
                }
            }
        }
    }

    /// Delivers all writes and watch events. Instances that overwrite each other would not
    /// terminate.
    fn quiet(&mut self) {
        for _ in 0..200 {
            if self.instances.iter().all(|instance| instance.writes.is_empty() && instance.news.is_empty()) {
                return;
            }
            for instance in 0..2 {
                self.write(instance);
                self.news(instance);
            }
        }
        panic!("the instances do not converge");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_instances_converge(
        actions in prop::collection::vec(action(), 1..100),
        homes in prop::collection::vec(0..2_usize, AGENTS),
    ) {
        let mut world = World::new();
        for action in actions {
            world.act(action);
        }
        // Finally, each agent is connected to one instance, and its older streams are closed.
        for (agent, home) in homes.into_iter().enumerate() {
            world.act(Action::Move(agent, home));
            while !world.agents[agent].old.is_empty() {
                world.act(Action::CloseOld(agent));
            }
        }
        world.quiet();
        for _ in 0..30 {
            world.act(Action::Second);
            world.quiet();
        }
        for agent in 0..AGENTS {
            let healthy = world.agents[agent].healthy;
            let stored = world.store[&key(agent)].1.as_ref().and_then(|record| record.condition.as_ref());
            prop_assert_eq!(stored.map(|condition| condition.status == Status::True), Some(healthy));
            for instance in &world.instances {
                let found = instance.entries.workloads().find(|workload| workload.key == key(agent));
                prop_assert_eq!(found.map(|workload| workload.served), Some(healthy));
            }
        }
    }
}
