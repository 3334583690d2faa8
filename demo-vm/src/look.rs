//! Observes the demo and records events: changes of health and of Envoy's endpoints.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::stage::{MACHINES, Stage};
use super::table::{self, Row};
use kit::vm::traffic::Tally;

/// The window over which the shares of requests are computed.
const WINDOW: Duration = Duration::from_secs(1);
/// Maximum number of events to show.
const EVENTS: usize = 8;

pub struct Watch {
    begin: Instant,
    endpoints: BTreeSet<SocketAddr>,
    tallies: VecDeque<(Instant, Tally)>,
    failed: u64,
    events: VecDeque<String>,
    /// The time of the last action on each machine to which Envoy has not reacted yet.
    done: Vec<Option<Instant>>,
    /// The health shown for each machine, and since when.
    health: Vec<(String, Instant)>,
}

impl Watch {
    pub fn new(stage: &Stage) -> Self {
        let now = Instant::now();
        // Failures during the start are not counted.
        stage.traffic.take();
        Self {
            begin: now,
            endpoints: BTreeSet::new(),
            tallies: VecDeque::new(),
            failed: 0,
            events: VecDeque::new(),
            done: vec![None; MACHINES],
            health: vec![(String::new(), now); MACHINES],
        }
    }

    /// Records the action of a key; its text begins with the name of the machine.
    pub fn note(&mut self, done: Option<String>) {
        let Some(done) = done else { return };
        let number = done.split(':').next().and_then(|name| name.rsplit('-').next()?.parse::<usize>().ok());
        if let Some(at) = number.and_then(|number| self.done.get_mut(number.checked_sub(1)?)) {
            *at = Some(Instant::now());
        }
        self.event(&done);
    }

    /// Polls Envoy's endpoints.
    pub async fn look(&mut self, stage: &Stage) {
        let found = stage.client.endpoints().await;
        for (index, machine) in stage.machines.iter().enumerate() {
            let address = machine.application.address;
            let change = match (self.endpoints.contains(&address), found.contains(&address)) {
                (true, false) => "removed from Envoy",
                (false, true) => "added to Envoy",
                _ => continue,
            };
            let after = self.done[index]
                .take()
                .map_or_else(String::new, |done| format!(", {:.1} s later", done.elapsed().as_secs_f64()));
            self.event(&format!("{}: {change}{after}", machine.name));
        }
        self.endpoints = found;
        let tally = stage.traffic.take();
        self.failed +=
            tally.iter().filter(|((status, _), _)| *status != 200).map(|(_, count)| count).sum::<u64>();
        let now = Instant::now();
        self.tallies.push_back((now, tally));
        self.tallies.retain(|(at, _)| now.duration_since(*at) < WINDOW);
    }

    fn event(&mut self, text: &str) {
        let at = self.begin.elapsed().as_secs_f64();
        self.events.push_back(format!("{at:7.1} s  {text}"));
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }

    /// Formats the table and the events.
    pub async fn table(&mut self, stage: &mut Stage) -> String {
        let view = stage.discovery.view().await;
        let answered = |name: &str| -> u64 {
            let of = |tally: &Tally| tally.get(&(200, name.to_owned())).copied().unwrap_or_default();
            self.tallies.iter().map(|(_, tally)| of(tally)).sum()
        };
        let all: u64 = self.tallies.iter().flat_map(|(_, tally)| tally.values()).sum();
        let answers: Vec<u64> = stage.machines.iter().map(|machine| answered(&machine.name)).collect();
        let mut rows = Vec::new();
        for (index, machine) in stage.machines.iter_mut().enumerate() {
            let health = health(&view, &machine.ip.to_string());
            if self.health[index].0 != health {
                self.health[index] = (health.clone(), Instant::now());
            }
            rows.push(Row {
                number: index + 1,
                name: machine.name.clone(),
                address: machine.application.address.to_string(),
                behaviour: machine.application.behaviour(),
                has_agent: machine.has_agent(),
                health,
                since: self.health[index].1.elapsed(),
                is_endpoint: self.endpoints.contains(&machine.application.address),
                share: answers[index].saturating_mul(100).checked_div(all).unwrap_or_default(),
            });
        }
        let answered: u64 = answers.iter().sum();
        let text = table::render(&rows);
        let requests = format!(
            "\nrequests through Envoy: {all} in the last second, {} of them failed; failed so far: {}\n",
            all.saturating_sub(answered),
            self.failed
        );
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        format!("{text}{requests}{}", table::foot(stage, &events))
    }
}

/// Returns what discovery reports about the machine's entry.
fn health(view: &Value, address: &str) -> String {
    let mut workloads = view["workloads"].as_array().into_iter().flatten();
    let Some(found) = workloads.find(|found| found["address"] == address) else {
        return if view.is_null() { "discovery does not respond" } else { "not registered" }.into();
    };
    let condition = &found["condition"];
    let text = |name: &str| condition[name].as_str().unwrap_or_default();
    let health = match text("status") {
        "True" => "Healthy".to_owned(),
        "False" if text("message").is_empty() => format!("Unhealthy: {}", text("reason")),
        "False" => format!("Unhealthy: {}", text("message")),
        "Unknown" => format!("Unknown: {}", text("reason")),
        _ => "no probe".to_owned(),
    };
    match found["agent"]["connected"].as_bool() {
        Some(true) => health,
        _ => format!("{health}, connection lost"),
    }
}

#[cfg(test)]
mod tests;
