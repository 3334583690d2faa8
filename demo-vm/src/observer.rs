//! Observes the demo and records events: changes of health and of Envoy's endpoints.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::demo::{Demo, MACHINES};
use super::table::{self, Row};
use kit::vm::traffic::ResponseCounts;

/// The window over which the shares of requests are computed.
const WINDOW: Duration = Duration::from_secs(1);
/// Maximum number of events to show.
const EVENTS: usize = 8;

pub struct Observer {
    begin: Instant,
    endpoints: BTreeSet<SocketAddr>,
    windows: VecDeque<(Instant, ResponseCounts)>,
    failed: u64,
    events: VecDeque<String>,
    /// The time of the last action on each machine to which Envoy has not reacted yet.
    done: Vec<Option<Instant>>,
    /// The health shown for each machine, and since when.
    health: Vec<(String, Instant)>,
}

impl Observer {
    pub fn new(demo: &Demo) -> Self {
        let now = Instant::now();
        // Failures during the start are not counted.
        demo.traffic.take();
        Self {
            begin: now,
            endpoints: BTreeSet::new(),
            windows: VecDeque::new(),
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
    pub async fn poll(&mut self, demo: &Demo) {
        let found = demo.client.endpoints().await;
        for (index, machine) in demo.machines.iter().enumerate() {
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
        let counts = demo.traffic.take();
        self.failed +=
            counts.iter().filter(|((status, _), _)| *status != 200).map(|(_, count)| count).sum::<u64>();
        let now = Instant::now();
        self.windows.push_back((now, counts));
        self.windows.retain(|(at, _)| now.duration_since(*at) < WINDOW);
    }

    fn event(&mut self, text: &str) {
        let at = self.begin.elapsed().as_secs_f64();
        self.events.push_back(format!("{at:7.1} s  {text}"));
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }

    /// Formats the table and the events.
    pub async fn table(&mut self, demo: &mut Demo) -> String {
        let view = demo.discovery.view().await;
        let answered = |name: &str| -> u64 {
            let of =
                |counts: &ResponseCounts| counts.get(&(200, name.to_owned())).copied().unwrap_or_default();
            self.windows.iter().map(|(_, counts)| of(counts)).sum()
        };
        let all: u64 = self.windows.iter().flat_map(|(_, counts)| counts.values()).sum();
        let answers: Vec<u64> = demo.machines.iter().map(|machine| answered(&machine.name)).collect();
        let mut rows = Vec::new();
        for (index, machine) in demo.machines.iter_mut().enumerate() {
            let health = health(&view, &machine.ip.to_string());
            if self.health[index].0 != health {
                self.health[index] = (health.clone(), Instant::now());
            }
            rows.push(Row {
                number: index + 1,
                name: machine.name.clone(),
                address: machine.application.address.to_string(),
                behavior: machine.application.behavior(),
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
        format!("{text}{requests}{}", table::footer(demo, &events))
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
