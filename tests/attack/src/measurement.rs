//! One attack: honest traffic before, during and after it, and what it costs the attacked processes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kit::report::quantile;
use tokio::time::{Instant, sleep};

use crate::cost::{Attacked, Cost, Meter};
use crate::honest::{Exchange, HonestClient, HonestTraffic};
use crate::hostile::{Attack, HostileClients};
use crate::network;
use crate::newcomer::Newcomer;
use crate::request::Verdict;

/// Number of wrong responses that are printed for an attack.
const EXAMPLES: usize = 3;

/// The lengths of the phases of an attack.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// The phase before the attack, and the one after it.
    pub quiet: Duration,
    pub attack: Duration,
}

impl Phases {
    /// Returns the phases for an attack of this length.
    pub fn new(attack: Duration) -> Self {
        Self { quiet: (attack / 4).clamp(Duration::from_millis(500), Duration::from_secs(15)), attack }
    }
}

/// An attack, and the honest clients beside it.
pub struct Scenario {
    /// The component and the port that are attacked.
    pub listener: String,
    pub attack: String,
    pub honest: Vec<HonestClient>,
    pub newcomers: Vec<Newcomer>,
    pub hostile: Vec<HostileClients>,
    pub attacked: Arc<Attacked>,
    /// The highest p99 of some rows during the attack.
    pub bars: Vec<(&'static str, Duration)>,
}

/// The requests of a row in one phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub count: u64,
    /// Requests without a complete response.
    pub lost: u64,
    /// Responses other than the expected one.
    pub changed: u64,
    /// In milliseconds; `None` if there was no request.
    pub p50: Option<f64>,
    /// In milliseconds; `None` if there was no request.
    pub p99: Option<f64>,
}

impl Figures {
    fn of<'a>(exchanges: impl Iterator<Item = &'a Exchange>) -> Self {
        let mut figures = Self::default();
        let mut times = Vec::new();
        for exchange in exchanges {
            times.push(exchange.took.as_secs_f64() * 1000.0);
            figures.lost += u64::from(matches!(exchange.verdict, Verdict::Lost(_)));
            figures.changed += u64::from(matches!(exchange.verdict, Verdict::Changed(_)));
        }
        Self::with_times(figures, &times)
    }

    /// Returns the figures of events that took these times, in milliseconds, and of `lost` ones.
    pub fn of_times(times: &[f64], lost: u64) -> Self {
        Self::with_times(Self { lost, ..Self::default() }, times).counting(lost)
    }

    fn counting(mut self, lost: u64) -> Self {
        self.count += lost;
        self
    }

    fn with_times(figures: Self, times: &[f64]) -> Self {
        let at = |share: f64| (!times.is_empty()).then(|| quantile(times, share));
        Self { count: times.len() as u64, p50: at(0.5), p99: at(0.99), ..figures }
    }
}

/// The figures of clients of one kind: before, during and after the attack.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: String,
    pub phases: [Figures; 3],
    /// The highest p99 during the attack.
    pub bar: Option<Duration>,
}

impl Row {
    /// Returns whether the bar holds; `None` without one, or without a request.
    pub fn holds(&self) -> Option<bool> {
        Some(self.phases[1].p99? <= self.bar?.as_secs_f64() * 1000.0)
    }
}

/// The result of an attack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// The component and the port that were attacked.
    pub listener: String,
    pub attack: String,
    pub rows: Vec<Row>,
    /// Some requests that were lost or got another response.
    pub examples: Vec<String>,
    pub cost: Cost,
    /// The number of hostile connection attempts.
    pub attempts: u64,
    /// The highest number of hostile connections at the same time.
    pub most_open: u64,
}

impl Measurement {
    pub fn name(&self) -> String {
        format!("{}, {}", self.listener, self.attack)
    }

    /// Returns the number of honest requests that were lost or got another response, in all phases.
    pub fn wrong(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.phases).map(|figures| figures.lost + figures.changed).sum()
    }

    /// Returns the bars that do not hold.
    pub fn broken(&self) -> Vec<String> {
        let slow = self.rows.iter().filter(|row| row.holds() == Some(false));
        let slow = slow.map(|row| format!("p99 of {} during the attack", row.name));
        self.cost.broken().into_iter().chain(slow).collect()
    }
}

pub async fn measure(scenario: Scenario, phases: Phases) -> Measurement {
    let Scenario { listener, attack, honest, newcomers, hostile, attacked, bars } = scenario;
    let names = honest.iter().map(|client| client.row).chain(newcomers.iter().map(|newcomer| newcomer.row));
    let names: Vec<&str> = distinct(names);
    let traffic = HonestTraffic::start(honest, newcomers);
    sleep(phases.quiet).await;
    let begin = Instant::now();
    let meter = Meter::start(&attacked);
    let sources = sources(&hostile);
    let running = Attack::start(hostile);
    sleep(phases.attack).await;
    let end = Instant::now();
    let (attempts, most_open) = (running.attempts(), running.most_open());
    drop(running);
    let cost = Cost { sources, ..meter.cost() };
    sleep(phases.quiet).await;
    let exchanges = traffic.stop();
    let rows = names.into_iter().map(|row| {
        let figures = |from: Option<Instant>, to: Option<Instant>| {
            let is_in = |exchange: &&Exchange| {
                exchange.row == row
                    && from.is_none_or(|from| exchange.started >= from)
                    && to.is_none_or(|to| exchange.started < to)
            };
            Figures::of(exchanges.iter().filter(is_in))
        };
        Row {
            name: row.to_owned(),
            phases: [figures(None, Some(begin)), figures(Some(begin), Some(end)), figures(Some(end), None)],
            bar: bars.iter().find(|(name, _)| *name == row).map(|(_, bar)| *bar),
        }
    });
    let (rows, examples) = (rows.collect(), examples(&exchanges));
    Measurement { listener, attack, rows, examples, cost, attempts, most_open }
}

/// Returns the number of sources of hostile clients; the addresses of an IPv6 network are one.
pub fn sources(hostile: &[HostileClients]) -> u64 {
    let addresses = hostile.iter().flat_map(|clients| &clients.sources);
    let sources: BTreeSet<_> = addresses.map(|address| network::source(*address)).collect();
    sources.len() as u64
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn examples(exchanges: &[Exchange]) -> Vec<String> {
    let wrong = exchanges.iter().filter_map(|exchange| match &exchange.verdict {
        Verdict::Expected | Verdict::Unknown => None,
        Verdict::Changed(why) => Some(format!("{}: changed: {why}", exchange.row)),
        Verdict::Lost(why) => Some(format!("{}: lost: {why}", exchange.row)),
    });
    wrong.take(EXAMPLES).collect()
}

#[cfg(test)]
mod tests;
