//! Tests of the state machine as rows of steps and their effects.

mod bulk_ends;
mod configured;
mod disconnects;
mod fleet;
mod identity;
mod registration_limits;
mod reports;
mod restarts;
mod self_preservation;
mod sessions;
mod shared_store;
mod simulation;
mod steps;
mod two_instances;

use std::collections::{BTreeMap, BTreeSet};

use workload_health::{HealthReport, Report, State};

use super::*;
use crate::objects::Spec;
use steps::{config, number, opened, report};

/// The time 2026-01-02T03:04:05Z.
const START: i64 = 1_767_323_045;

fn auto() -> Key {
    Key::new("shop", "payments-10.0.0.7")
}

fn manual() -> Key {
    Key::new("shop", "vm-7")
}

/// A state machine that is driven by textual steps.
struct Case {
    entries: Entries,
    settings: Settings,
    now: Duration,
    disk: BTreeMap<Key, Record>,
    /// Writes that are not confirmed; `None` confirms all writes immediately.
    unconfirmed: Option<Vec<(Key, u64, Option<Record>)>>,
    key: Key,
}

impl Case {
    fn new(settings: Settings) -> Self {
        let entries = Entries::new(settings.clone(), Vec::new());
        Self { entries, settings, now: Duration::ZERO, disk: BTreeMap::new(), unconfirmed: None, key: auto() }
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
                match &mut self.unconfirmed {
                    Some(writes) => writes.push((key, write, record)),
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
            ["istio", stream, word] => {
                let report = Report::Istio { healthy: word == "ok", message: "HTTP status 503".to_owned() };
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
                self.input(Input::ProcessResumed)
            }
            ["hold"] => {
                self.unconfirmed = Some(Vec::new());
                Vec::new()
            }
            ["store"] => {
                let writes = self.unconfirmed.replace(Vec::new()).unwrap_or_default();
                writes.into_iter().flat_map(|(key, write, record)| self.store(key, write, record)).collect()
            }
            ["restart"] => {
                let stored = self.disk.clone().into_iter().collect();
                self.entries = Entries::new(self.settings.clone(), stored);
                (self.now, self.unconfirmed) = (Duration::ZERO, None);
                Vec::new()
            }
            ["preserved"] => {
                self.input(Input::Preserved(BTreeMap::from([(self.key.clone(), Preserved::LastEndpoint)])))
            }
            ["not", "preserved"] => self.input(Input::Preserved(BTreeMap::new())),
            // Instances that are alive, and with `-` those that ended cleanly.
            ["alive", ref names @ ..] => {
                let released = names.iter().filter_map(|name| name.strip_prefix('-'));
                let released = released.map(str::to_owned).collect();
                let alive = names.iter().filter(|name| !name.starts_with('-'));
                let alive = alive.map(|name| (*name).to_owned()).collect();
                self.input(Input::Replicas { alive, released })
            }
            ["isolated"] => self.input(Input::EndReporters),
            ["away"] => self.input(Input::StoreUnreachable(true)),
            ["back"] => self.input(Input::StoreUnreachable(false)),
            ["deleted"] => {
                self.disk.remove(&self.key);
                self.input(Input::Observed { key: self.key.clone(), record: None })
            }
            // Another instance writes the record: its controller, its session, and what it changes.
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
            _ => panic!("unknown step {step}"),
        }
    }

    /// Formats the state of the entry as in `served True/ProbeSucceeded`, `removed` or `gone`.
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

/// Formats the effects. Most events are omitted.
fn shown(effects: &[Effect]) -> String {
    let word = |effect: &Effect| match effect {
        Effect::Command { stream, command } => Some(match command {
            StreamCommand::Hello { session, probe, .. } => {
                let has_probe = probe.as_ref().is_some_and(|group| group.group.probe.is_some());
                format!("hello {stream} s{session}{}", if has_probe { " probe" } else { "" })
            }
            StreamCommand::Ack { epoch, generation } => format!("ack {stream} {epoch}/{generation}"),
            StreamCommand::Close { code, text } => format!("close {stream} {code:?} {text}"),
        }),
        Effect::Write { record: Some(_), .. } => Some("write".to_owned()),
        Effect::Write { record: None, .. } => Some("delete".to_owned()),
        Effect::Changed { .. } => Some("push".to_owned()),
        Effect::Event(event) => match event {
            Event::Report(ReportOutcome::Stale) => Some("stale".to_owned()),
            Event::Report(ReportOutcome::Rejected) => Some("no entry".to_owned()),
            Event::DuplicateAgent { .. } => Some("duplicate".to_owned()),
            Event::PeerAddress { refused: false, .. } => Some("other peer".to_owned()),
            _ => None,
        },
    };
    effects.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

/// Runs the steps and compares the effects and the state of the entry after each, separated by `|`.
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

/// The steps up to a healthy auto-registered entry of a group with a probe.
const HEALTHY: [(&str, &str); 3] = [
    ("config probe", "| gone"),
    ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
    ("report 1 e 1 Healthy", "write, push, ack 1 e/1 | served True/ProbeSucceeded"),
];

fn after_healthy(settings: Settings, rows: &[(&str, &str)]) {
    let rows: Vec<_> = HEALTHY.iter().chain(rows).copied().collect();
    check(settings, auto(), &rows);
}
