//! A model control plane, a model Envoy and the proxy, on a network that loses, repeats and interrupts.
//! While nothing is in flight, the stored configuration must be what Envoy has accepted. After the last
//! fault, Envoy's resources must equal the control plane's. An Envoy may leave and come back, also with
//! the other variant; without one, the control plane must know the health of the workload, and at the end
//! receives the final report.

mod envoy;
mod server;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::super::*;
use super::support::{IDENTITY, OWN, agent, content_of, reporter, settings, status, terminating};
use crate::last_good::{LastGood, StoredResource};
use envoy::Envoy;
use server::{REJECTED, Server};
use xds::type_url::is_complete;

/// Faulty steps of one case, and the limit of the steps without faults.
const FAULTY_STEPS: usize = 300;
const QUIET_STEPS: usize = 3000;

struct World {
    random: fastrand::Rng,
    now: Duration,
    /// Variant of Envoy.
    variant: Variant,
    proxy: Proxy,
    server: Server,
    envoy: Envoy,
    /// True if the control plane can be reached.
    is_reachable: bool,
    /// True while the proxy waits for a connection.
    is_connecting: bool,
    has_upstream: bool,
    has_downstream: bool,
    /// True if an Envoy runs.
    has_envoy: bool,
    /// Generation of the health status.
    generation: u64,
    validations: VecDeque<Input>,
    /// Resources that the agent itself has received and not put in use yet.
    unchecked: VecDeque<OwnResource>,
    /// The agent's own resource in use.
    own: Option<Bytes>,
    is_done: bool,
    to_server: VecDeque<Bytes>,
    to_proxy: VecDeque<Bytes>,
    to_envoy: VecDeque<Bytes>,
    from_envoy: VecDeque<Bytes>,
    /// The write in progress: the content, unless only the age is written, and the time of the last
    /// confirmation.
    write: Option<(Option<LastGood>, Duration)>,
    /// The file, and when a control plane confirmed it last.
    stored: Option<(Vec<u8>, Duration)>,
    trace: Vec<(Duration, Input)>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let variant = if random.bool() { Variant::Sotw } else { Variant::Delta };
        let mut world = Self {
            now: Duration::ZERO,
            variant,
            proxy: proxy(None, &mut random),
            server: Server::new(variant, random.fork()),
            envoy: Envoy::new(variant, random.fork()),
            is_reachable: random.bool(),
            is_connecting: false,
            has_upstream: false,
            has_downstream: false,
            has_envoy: random.u32(..3) > 0,
            generation: 1,
            validations: VecDeque::new(),
            unchecked: VecDeque::new(),
            own: None,
            is_done: false,
            to_server: VecDeque::new(),
            to_proxy: VecDeque::new(),
            to_envoy: VecDeque::new(),
            from_envoy: VecDeque::new(),
            write: None,
            stored: None,
            trace: Vec::new(),
            random,
        };
        if world.has_envoy {
            world.start_envoy_stream();
        } else {
            world.step(Input::Tick);
        }
        world
    }

    fn step(&mut self, input: Input) {
        self.trace.push((self.now, input.clone()));
        let random = &mut self.random;
        let effects = self.proxy.step(self.now, input, &mut || random.f64());
        for effect in effects {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Connect => self.is_connecting = true,
            Effect::CloseUpstream | Effect::AbortUpstream(_) => self.drop_upstream(),
            Effect::SendUpstream(message) => {
                assert!(self.has_upstream, "a request without a stream");
                self.to_server.push_back(message);
            }
            Effect::SendEnvoy(message, suffix) => {
                assert!(self.has_downstream, "a response without a stream");
                self.to_envoy.push_back([message, suffix].concat().into());
            }
            Effect::CloseEnvoy(_) => self.drop_downstream(),
            Effect::Store { write, age } => {
                assert!(self.write.is_none(), "two writes at once");
                let content = (write == Write::Content).then(|| self.proxy.last_good());
                self.write = Some((content, self.now.saturating_sub(age)));
            }
            Effect::Health(HealthEvent::ValidateProbe { hello, .. }) => {
                let result = if self.random.bool() { Ok(()) } else { Err("invalid".to_owned()) };
                self.validations.push_back(Input::ProbeValidated { hello, result });
            }
            Effect::Health(HealthEvent::Done) => self.is_done = true,
            Effect::HalfCloseUpstream => assert!(!self.has_envoy, "the stream is Envoy's"),
            Effect::Own(resource) => self.unchecked.push_back(resource),
            Effect::Health(_) | Effect::Event(_) => {}
        }
    }

    fn drop_upstream(&mut self) {
        self.has_upstream = false;
        self.is_connecting = false;
        self.to_server.clear();
        self.to_proxy.clear();
        self.server.disconnected();
    }

    fn drop_downstream(&mut self) {
        self.has_downstream = false;
        self.envoy.disconnected();
        self.to_envoy.clear();
        self.from_envoy.clear();
    }

    fn start_envoy(&mut self) {
        self.has_envoy = true;
        self.variant = if self.random.u32(..4) > 0 { self.variant } else { self.other_variant() };
        self.envoy = Envoy::new(self.variant, self.random.fork());
        self.start_envoy_stream();
    }

    fn other_variant(&self) -> Variant {
        if self.variant == Variant::Sotw { Variant::Delta } else { Variant::Sotw }
    }

    fn stop_envoy_stream(&mut self) {
        if self.has_downstream {
            self.drop_downstream();
            self.step(Input::EnvoyClosed);
        }
    }

    /// Ends the agent; an Envoy remains until then.
    fn terminate(&mut self) {
        let until = self.now + Duration::from_secs(10);
        // An even one, which is unhealthy.
        self.generation += 2 - self.generation % 2;
        self.step(Input::Terminating);
        self.step(Input::Health(terminating(self.generation)));
        while !self.is_done && self.now < until && self.progress() {}
    }

    fn start_envoy_stream(&mut self) {
        self.drop_downstream();
        self.has_downstream = true;
        self.step(Input::EnvoyOpened(self.variant));
        self.from_envoy.extend(self.envoy.connected());
    }

    fn lose_upstream(&mut self) {
        if self.has_upstream || self.is_connecting {
            self.drop_upstream();
            self.step(Input::UpstreamClosed { is_rejected: false, reason: "lost".to_owned() });
        }
    }

    fn connect(&mut self) {
        self.is_connecting = false;
        if self.is_reachable {
            self.has_upstream = true;
            self.server.connected(self.proxy.variant());
            self.step(Input::UpstreamOpened { node: agent(), server: String::new() });
        } else {
            self.step(Input::UpstreamClosed { is_rejected: false, reason: "refused".to_owned() });
        }
    }

    /// Delivers one message or lets time pass. Returns false if there is nothing to do.
    fn progress(&mut self) -> bool {
        let reads_upstream = self.proxy.reads_upstream() && self.to_envoy.is_empty();
        let mut ready = Vec::new();
        ready.extend(self.is_connecting.then_some(0));
        ready.extend((!self.to_server.is_empty()).then_some(1));
        ready.extend((!self.to_proxy.is_empty() && reads_upstream).then_some(2));
        ready.extend((!self.to_envoy.is_empty()).then_some(3));
        ready.extend((!self.from_envoy.is_empty()).then_some(4));
        ready.extend((self.has_envoy && !self.has_downstream).then_some(5));
        ready.extend((!self.validations.is_empty()).then_some(8));
        ready.extend((!self.unchecked.is_empty()).then_some(9));
        ready.extend(self.write.is_some().then_some(6));
        // Warming takes longer than a message.
        let is_warm = ready.is_empty() || self.random.u32(..8) == 0;
        ready.extend((self.envoy.is_paused() && is_warm).then_some(7));
        let Some(choice) = self.random.choice(&ready) else { return self.wait() };
        self.now += Duration::from_millis(self.random.u64(0..5));
        match choice {
            0 => self.connect(),
            1 => {
                let message = self.to_server.pop_front().unwrap();
                self.to_proxy.extend(self.server.receive(&message));
            }
            2 => {
                let message = self.to_proxy.pop_front().unwrap();
                self.step(Input::UpstreamResponse(message));
            }
            3 => {
                let message = self.to_envoy.pop_front().unwrap();
                self.from_envoy.extend(self.envoy.response(&message));
            }
            4 => {
                let message = self.from_envoy.pop_front().unwrap();
                self.step(Input::EnvoyRequest(message));
            }
            5 => self.start_envoy_stream(),
            6 => self.finish_write(),
            8 => {
                let validated = self.validations.pop_front().unwrap();
                self.step(validated);
            }
            9 => self.check_own(),
            _ => {
                let requests = self.envoy.resume();
                if self.has_downstream {
                    self.from_envoy.extend(requests);
                }
            }
        }
        true
    }

    /// Puts a resource of the agent itself in use, unless it is damaged.
    fn check_own(&mut self) {
        let resource = self.unchecked.pop_front().unwrap();
        let is_damaged = content_of(&resource.any) == REJECTED.to_string();
        let result = if is_damaged { Err("damaged".to_owned()) } else { Ok(()) };
        if result.is_ok() {
            self.own = Some(xds::parse_any(&resource.any).unwrap().1);
        }
        self.step(Input::OwnChecked { resource, result });
    }

    /// Completes a write, of which some fail.
    fn finish_write(&mut self) {
        let (content, at) = self.write.take().unwrap();
        let is_ok = self.random.u32(..4) > 0;
        let packed = content.map(|content| content.packed());
        match (&packed, &mut self.stored) {
            _ if !is_ok => {}
            (Some(packed), stored) => *stored = Some((packed.encode(IDENTITY), at)),
            (None, Some((_, confirmed))) => *confirmed = at,
            (None, None) => panic!("the age of no file"),
        }
        let result = if is_ok { Ok(()) } else { Err("disk full".to_owned()) };
        self.step(Input::Stored { packed: packed.unwrap_or_default(), result });
    }

    fn wait(&mut self) -> bool {
        let due = self.proxy.next_due();
        let Some(due) = due.filter(|due| *due < self.now + Duration::from_secs(40)) else { return false };
        self.now = self.now.max(due);
        self.step(Input::Tick);
        true
    }

    fn fault(&mut self) {
        match self.random.u32(0..17) {
            0..4 => {
                for _ in 0..self.random.u32(1..4) {
                    let changes = self.server.change(true);
                    if self.has_upstream {
                        self.to_proxy.extend(changes);
                    }
                }
            }
            4 => self.lose_upstream(),
            5 => {
                // The last messages of a stream are lost with it.
                let kept = self.random.usize(..=self.to_proxy.len());
                self.to_proxy.truncate(kept);
                self.lose_upstream();
            }
            6 => self.is_reachable = !self.is_reachable,
            7 => {
                if let Some(message) = self.to_proxy.back().cloned() {
                    self.to_proxy.push_back(message);
                }
            }
            8 => {
                // Envoy loses its stream and keeps its resources.
                self.stop_envoy_stream();
                if self.has_envoy {
                    self.start_envoy_stream();
                }
            }
            9 => {
                self.stop_envoy_stream();
                self.start_envoy();
            }
            10 => {
                self.drop_upstream();
                self.write = None;
                let stored = self.stored.clone().map(|(file, at)| {
                    (LastGood::decode(file, IDENTITY).unwrap(), self.now.saturating_sub(at))
                });
                self.proxy = proxy(stored, &mut self.random);
                self.validations.clear();
                self.unchecked.clear();
                self.own = self.proxy.stored_own(OWN);
                self.generation = 1;
                self.now = Duration::ZERO;
                if let Some((_, at)) = &mut self.stored {
                    *at = Duration::ZERO;
                }
                if self.random.bool() {
                    self.envoy = Envoy::new(self.variant, self.random.fork());
                }
                self.drop_downstream();
                if self.has_envoy {
                    self.start_envoy_stream();
                }
            }
            11 => {
                self.server.restart();
                self.lose_upstream();
            }
            12 => {
                self.has_envoy = false;
                self.stop_envoy_stream();
            }
            13 | 14 => {
                self.generation += 1;
                self.step(Input::Health(status(self.generation)));
            }
            15 => self.step(Input::FilesChanged),
            _ => {
                if self.has_upstream && self.random.u32(..4) == 0 {
                    self.to_proxy.push_back(b"\xff garbage".to_vec().into());
                }
            }
        }
    }

    /// Runs without faults until nothing is left to do.
    fn settle(&mut self) {
        self.is_reachable = true;
        if self.has_envoy && !self.has_downstream {
            self.start_envoy_stream();
        }
        let changes = self.server.change(false);
        if self.has_upstream {
            self.to_proxy.extend(changes);
        }
        // A stream that has lost messages is broken, so it ends.
        self.lose_upstream();
        for _ in 0..QUIET_STEPS {
            if self.has_upstream && self.is_idle() && self.is_settled() {
                return;
            }
            if !self.progress() {
                return;
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.unchecked.is_empty()
            && [&self.to_server, &self.to_proxy, &self.to_envoy, &self.from_envoy]
                .iter()
                .all(|queue| queue.is_empty())
    }

    /// Refused reports may pause for longer than this, but only on a stream of Envoy.
    fn is_settled(&self) -> bool {
        if self.has_envoy { self.is_equal() && self.has_own() } else { self.server.knows(self.generation) }
    }

    /// Returns true if the agent uses the resource that the control plane has for it.
    fn has_own(&self) -> bool {
        let expected = xds::parse_any(&super::support::any("", &self.server.own().to_string())).unwrap().1;
        self.own == Some(expected)
    }

    fn is_equal(&self) -> bool {
        self.envoy.resources() == self.server.resources()
    }

    /// Returns a type of which the proxy stores something else than Envoy has accepted, or clusters or
    /// listeners that Envoy has neither accepted nor runs. While messages are in flight, the proxy cannot know.
    fn wrongly_stored(&self) -> Option<String> {
        if self.proxy.stored_own(OWN) != self.own {
            return Some(format!(
                "the agent uses {:?}, but {:?} is stored",
                self.own,
                self.proxy.stored_own(OWN)
            ));
        }
        if !self.has_downstream || !self.to_envoy.is_empty() || !self.from_envoy.is_empty() {
            return None;
        }
        let good = self.proxy.last_good();
        self.envoy.reported().find_map(|(of_type, watch)| {
            let stored = good.0.get(of_type).map(|good| good.resources()).unwrap_or_default();
            let content = |stored: &StoredResource| content_of(&stored.any).parse::<u64>().unwrap();
            let stored: BTreeMap<String, u64> =
                stored.iter().map(|(name, stored)| (name.clone(), content(stored))).collect();
            let is_other = watch.accepted.iter().any(|(name, content)| stored.get(name) != Some(content));
            let is_gone = |name: &String| {
                !watch.accepted.contains_key(name)
                    && !watch.resources.contains_key(name)
                    && !watch.rejected.contains(name)
            };
            let has_more = is_complete(of_type) && stored.keys().any(is_gone);
            let describe = || format!("{of_type}: stored {stored:?}, accepted {:?}", watch.accepted);
            (is_other || has_more).then(describe)
        })
    }

    fn fail(&self, seed: u64, what: &str) -> ! {
        let last = self.trace.len().saturating_sub(60);
        let describe = |(at, input): &(Duration, Input)| format!("{at:?} {input:?}\n");
        panic!(
            "seed {seed}, {:?}: {what}: Envoy {:?}, control plane {:?}\n{}",
            self.variant,
            self.envoy.resources(),
            self.server.resources(),
            self.trace[last..].iter().map(describe).collect::<String>()
        );
    }
}

fn proxy(stored: Option<(LastGood, Duration)>, random: &mut fastrand::Rng) -> Proxy {
    let variant = if random.bool() { Variant::Sotw } else { Variant::Delta };
    let settings = ProxySettings { own_types: vec![OWN.to_owned()], ..settings(variant, true) };
    Proxy::new(settings, reporter(), stored)
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..FAULTY_STEPS {
        if world.random.u32(..8) == 0 {
            world.fault();
        }
        world.progress();
        if let Some(what) = world.wrongly_stored() {
            world.fail(seed, &what);
        }
    }
    world.settle();
    if !world.is_settled() {
        world.fail(seed, "the control plane and Envoy, or without one the health reports, differ");
    }
    if world.proxy.view(world.now).stale.is_some() {
        world.fail(seed, "the configuration is stale");
    }
    world.terminate();
    if !world.is_done {
        world.fail(seed, "the final report did not time out");
    }
    if !world.has_envoy && !world.server.knows(world.generation) {
        world.fail(seed, "the final report is lost");
    }
}

#[test]
fn envoy_ends_with_the_resources_of_the_control_plane() {
    (0..1000).for_each(run);
}

/// For a closing check, in an optimised build.
#[test]
#[ignore = "takes longer"]
fn envoy_ends_with_the_resources_of_the_control_plane_in_100_000_cases() {
    (1000..101_000).for_each(run);
}
