//! Rows of steps: what happens, and what follows.

mod identity;
mod life;
mod replicas;
mod sessions;
mod several;
mod simulation;

use std::collections::{BTreeMap, BTreeSet};

use probe::WorkloadGroup;
use serde_json::json;

use super::*;
use crate::discovery::objects::{Group, ManualEntry, Spec};

/// 2026-01-02T03:04:05Z.
const START: i64 = 1_767_323_045;

fn auto() -> Key {
    Key::new("shop", "payments-10.0.0.7")
}

fn manual() -> Key {
    Key::new("shop", "vm-7")
}

fn group(probe: Option<serde_json::Value>, service_account: Option<&str>) -> Arc<Group> {
    let document = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup",
        "metadata": {"name": "payments", "namespace": "shop"},
        "spec": {
            "metadata": {"labels": {"app": "payments"}},
            "template": {"ports": {"http": 8080}, "serviceAccount": service_account},
            "probe": probe,
        },
    });
    let group = WorkloadGroup::parse(&document).expect("the group is right").value;
    Arc::new(Group::new(Key::new("shop", "payments"), group))
}

/// `group`, `probe` (a group with one), `account` (one whose service account is pay), `manual`, `checked`, `moved` (manual entries),
/// `keep`, `incomplete`.
fn config(words: &str) -> Config {
    let mut config = Config::default();
    let entry = |address: &str, health_checks| {
        let spec = Arc::new(Spec { address: address.to_owned(), ..Spec::default() });
        Arc::new(ManualEntry { spec, annotations: BTreeMap::new(), health_checks })
    };
    let key = Key::new("shop", "payments");
    for word in words.split_whitespace() {
        match word {
            "group" => drop(config.groups.insert(key.clone(), group(None, None))),
            "probe" => {
                let probe = json!({"periodSeconds": 9, "timeoutSeconds": 1, "failureThreshold": 2, "httpGet": {"port": 80}});
                config.groups.insert(key.clone(), group(Some(probe), None));
            }
            "account" => drop(config.groups.insert(key.clone(), group(None, Some("pay")))),
            "manual" => drop(config.entries.insert(manual(), entry("10.0.0.7", None))),
            "checked" => drop(config.entries.insert(manual(), entry("10.0.0.7", Some(true)))),
            "moved" => drop(config.entries.insert(manual(), entry("10.0.0.8", Some(true)))),
            "taken" => drop(config.entries.insert(auto(), entry("10.0.0.7", None))),
            "incomplete" => config.incomplete = true,
            _ => panic!("no configuration {word}"),
        }
    }
    config
}

/// A server that is driven by words.
struct Case {
    entries: Entries,
    settings: Settings,
    now: Duration,
    disk: BTreeMap<Key, Record>,
    /// Writes that wait; `None`: all are stored at once.
    held: Option<Vec<(Key, u64, Option<Record>)>>,
    key: Key,
}

impl Case {
    fn new(settings: Settings) -> Self {
        let entries = Entries::new(settings.clone(), Vec::new());
        Self { entries, settings, now: Duration::ZERO, disk: BTreeMap::new(), held: None, key: auto() }
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_seconds(START + i64::try_from(self.now.as_secs()).expect("small"))
    }

    fn input(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = self.entries.step(self.now, self.wall(), input);
        let mut at = 0;
        while at < effects.len() {
            if let Effect::Write { key, write, record, session } = effects[at].clone() {
                let record = record.map(|record| *record);
                assert!(record.as_ref().is_none_or(|record| record.session == session));
                match &mut self.held {
                    Some(held) => held.push((key, write, record)),
                    None => effects.extend(self.store(key, write, record)),
                }
            }
            at += 1;
        }
        effects
    }

    fn store(&mut self, key: Key, write: u64, record: Option<Record>) -> Vec<Effect> {
        match record {
            Some(record) => self.disk.insert(key.clone(), record),
            None => self.disk.remove(&key),
        };
        self.entries.step(self.now, self.wall(), Input::Stored { key, write })
    }

    fn wait(&mut self, seconds: f64) -> Vec<Effect> {
        let until = self.now + Duration::from_secs_f64(seconds);
        let mut effects = Vec::new();
        while let Some(due) = self.entries.next_due().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            effects.extend(self.input(Input::Tick));
        }
        self.now = until;
        effects
    }

    fn word(&mut self, step: &str) -> Vec<Effect> {
        let words: Vec<&str> = step.split_whitespace().collect();
        match *words.as_slice() {
            ["config", ..] => self.input(Input::Config(Arc::new(config(&step[6..])))),
            ["open", stream, ref kind @ ..] => {
                let input = opened(stream, kind, &self.key);
                self.input(input)
            }
            ["report", stream, epoch, generation, word] => {
                let report = Report::AppHealth(report(epoch, generation, word));
                self.input(Input::Report { stream: number(stream), report })
            }
            ["plain", stream, word] => {
                let report = Report::Plain { healthy: word == "ok", message: "HTTP status 503".to_owned() };
                self.input(Input::Report { stream: number(stream), report })
            }
            ["acked", stream, version] => {
                self.input(Input::ProbeAcked { stream: number(stream), version: version.to_owned() })
            }
            ["nacked", stream] => {
                self.input(Input::ProbeNacked { stream: number(stream), text: "no\n".to_owned() })
            }
            ["close", stream] => self.input(Input::Closed { stream: number(stream) }),
            ["wait", seconds] => self.wait(seconds.parse().expect("seconds")),
            ["stopped", seconds] => {
                self.now += Duration::from_secs(number(seconds));
                self.input(Input::Resumed)
            }
            ["hold"] => {
                self.held = Some(Vec::new());
                Vec::new()
            }
            ["store"] => {
                let held = self.held.replace(Vec::new()).unwrap_or_default();
                held.into_iter().flat_map(|(key, write, record)| self.store(key, write, record)).collect()
            }
            ["restart"] => {
                let stored = self.disk.clone().into_iter().collect();
                self.entries = Entries::new(self.settings.clone(), stored);
                (self.now, self.held) = (Duration::ZERO, None);
                Vec::new()
            }
            ["kept"] => self.input(Input::Kept(BTreeSet::from([self.key.clone()]))),
            ["unkept"] => self.input(Input::Kept(BTreeSet::new())),
            ["alive", ref names @ ..] => {
                let alive = names.iter().map(|name| (*name).to_owned()).collect();
                self.input(Input::Replicas { alive })
            }
            ["away"] => self.input(Input::StoreAway(true)),
            ["back"] => self.input(Input::StoreAway(false)),
            ["deleted"] => {
                self.disk.remove(&self.key);
                self.input(Input::Observed { key: self.key.clone(), record: None })
            }
            // Another one writes: who, session, and what it changes.
            ["observed", controller, session, ref words @ ..] => {
                let mut record = self.disk.get(&self.key).cloned().unwrap_or_default();
                record.controller = Some(controller.to_owned());
                record.session = number(session);
                record.resource_version = Some("8".to_owned());
                let auto = record
                    .auto
                    .get_or_insert_with(|| Auto { group: "payments".to_owned(), ..Auto::default() });
                if words.contains(&"moved") {
                    auto.spec = Arc::new(Spec { address: "10.0.0.99".to_owned(), ..Spec::default() });
                }
                self.disk.insert(self.key.clone(), record.clone());
                self.input(Input::Observed { key: self.key.clone(), record: Some(Box::new(record)) })
            }
            _ => panic!("no step {step}"),
        }
    }

    /// As `served True/ProbeSucceeded`, `removed`, `gone`.
    fn state(&self) -> String {
        let Some(workload) = self.entries.workloads().find(|workload| workload.key == self.key) else {
            return "gone".to_owned();
        };
        let served = if workload.served { "served" } else { "removed" };
        let condition = self.entries.entries[&self.key].record.condition.as_ref();
        match condition {
            Some(condition) => format!("{served} {}/{}", condition.status, condition.reason),
            None => served.to_owned(),
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// `ours` or plain; `entry` (by WORKLOAD_ENTRY), `client`, `declares`, `far` (another peer address), `as:NAME` (a certificate's service
/// account), `of:NAMESPACE` (a certificate's namespace).
fn opened(stream: &str, kind: &[&str], key: &Key) -> Input {
    let mut node = Node {
        id: "sidecar~10.0.0.7~vm-7.shop~shop.svc.cluster.local".to_owned(),
        namespace: Some("shop".to_owned()),
        group: Some("payments".to_owned()),
        ..Node::default()
    };
    let (mut peer, mut identity) = ("10.0.0.7:4000", None);
    for kind in kind {
        match *kind {
            "ours" => node.app_health = true,
            "plain" => {}
            "entry" => (node.group, node.workload_entry) = (None, Some(key.name.clone())),
            "client" => node.group = None,
            "declares" => node.readiness_probe = true,
            "labelled" => node.labels = BTreeMap::from([("version".to_owned(), "v2".to_owned())]),
            "nameless" => node.namespace = None,
            "far" => peer = "10.0.0.8:4000",
            "mapped" => peer = "[::ffff:10.0.0.7]:4000",
            other => {
                let (namespace, service_account) = match other.split_once(':').expect("a kind of stream") {
                    ("as", name) => ("shop", name),
                    (_, namespace) => (namespace, "pay"),
                };
                let (namespace, service_account) = (namespace.to_owned(), service_account.to_owned());
                identity = Some(Identity { namespace, service_account });
            }
        }
    }
    let peer = peer.parse().expect("an address");
    Input::Opened { stream: number(stream), peer, identity, node: Box::new(node) }
}

fn report(epoch: &str, generation: &str, word: &str) -> HealthReport {
    let (state, reason, ago) = match word {
        "Healthy" => (State::Healthy, "ProbeSucceeded", Some(2_000)),
        "Stalled" => (State::Healthy, "ProbeSucceeded", Some(31_000)),
        "Unhealthy" => (State::Unhealthy, "HttpStatus", Some(2_000)),
        "Draining" | "Terminating" => (State::Unhealthy, word, None),
        "Awaiting" => (State::Unknown, "AwaitingVerdict", None),
        "NoProbe" => (State::Unknown, "NoProbe", None),
        _ => panic!("no report {word}"),
    };
    HealthReport {
        epoch: epoch.to_owned(),
        generation: number(generation),
        state,
        reason: reason.to_owned(),
        message: "text".to_owned(),
        since_ms: 0,
        last_probe_ago_ms: ago,
        interval_ms: None,
        verdict_within_ms: None,
    }
}

use probe::{HealthReport, State};

/// Effects in short; what comes with every step (changes, events of the log) is left out.
fn shown(effects: &[Effect]) -> String {
    let word = |effect: &Effect| match effect {
        Effect::Hello { stream, session, probe, .. } => {
            let has_probe = probe.as_ref().is_some_and(|group| group.group.probe.is_some());
            Some(format!("hello {stream} s{session}{}", if has_probe { " probe" } else { "" }))
        }
        Effect::Ack { stream, epoch, generation } => Some(format!("ack {stream} {epoch}/{generation}")),
        Effect::Close { stream, code, text } => Some(format!("close {stream} {code:?} {text}")),
        Effect::Write { record: Some(_), .. } => Some("write".to_owned()),
        Effect::Write { record: None, .. } => Some("delete".to_owned()),
        Effect::Changed { .. } => Some("push".to_owned()),
        Effect::Note(event) => match event {
            Event::Stale { .. } => Some("stale".to_owned()),
            Event::Refused { refusal: Refusal::NoEntry, .. } => Some("no entry".to_owned()),
            Event::DuplicateAgent { .. } => Some("duplicate".to_owned()),
            Event::PeerAddress { refused: false, .. } => Some("other peer".to_owned()),
            _ => None,
        },
    };
    effects.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

/// Steps, each with the effects and the state of the entry after it, `|` between.
fn check(settings: Settings, key: Key, rows: &[(&str, &str)]) {
    let mut case = Case { key, ..Case::new(settings) };
    for (step, expected) in rows {
        let effects = case.word(step);
        let found = format!("{} | {}", shown(&effects), case.state());
        assert_eq!(found.trim(), *expected, "after {step:?} of {rows:#?}");
        assert!(case.entries.next_due().is_none_or(|due| due > case.now), "due after {step}");
    }
}

fn settings() -> Settings {
    Settings { restart_grace: Duration::ZERO, ..Settings::default() }
}
