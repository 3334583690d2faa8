//! Minutes of honest and hostile load, with random faults that a seed determines. Every verdict must be
//! the one that the current state of the application requires, no endpoint may be lost without a
//! reason, and memory and descriptors must not grow.

mod fault;
mod samples;
mod system;

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::{Table, presets};
use fastrand::Rng;
use kit::envoy::workspace;
use kit::terminal::say;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::honest::{Exchange, HonestTraffic};
use crate::hostile::Attack;
use crate::report::{self, mib};
use crate::request::Verdict;
use crate::resources::Trend;
use fault::Fault;
use samples::Samples;
use system::System;

/// The shortest and the longest time that a fault lasts.
const HOLD: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(6));
/// Number of wrong verdicts that are printed.
const EXAMPLES: usize = 10;

/// The verdicts on the requests of one kind.
#[derive(Clone, Debug, Default)]
struct Tally {
    count: u64,
    lost: u64,
    changed: u64,
    /// Requests during a change of what is correct.
    unknown: u64,
}

#[derive(Debug, Default)]
struct Findings {
    verdicts: BTreeMap<&'static str, Tally>,
    faults: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
}

impl Findings {
    fn add(&mut self, exchanges: Vec<Exchange>, fault: &str) {
        for Exchange { row, verdict, .. } in exchanges {
            let tally = self.verdicts.entry(row).or_default();
            tally.count += 1;
            match verdict {
                Verdict::Expected => {}
                Verdict::Unknown => tally.unknown += 1,
                Verdict::Lost(why) => {
                    tally.lost += 1;
                    self.wrong.push(format!("{row}, {fault}: lost: {why}"));
                }
                Verdict::Changed(why) => {
                    tally.changed += 1;
                    self.wrong.push(format!("{row}, {fault}: changed: {why}"));
                }
            }
        }
    }
}

/// Runs for this long and returns whether nothing was found.
///
/// # Errors
/// Names what cannot be started or written.
pub async fn run(seed: u64, length: Duration) -> Result<bool, String> {
    let mut random = Rng::with_seed(seed);
    let mut system = System::start().await?;
    let traffic = HonestTraffic::start(system.honest(), Vec::new());
    let attack = Attack::start(system.hostile());
    let samples = Samples::start(system.pids());
    let mut findings = Findings::default();
    let begin = Instant::now();
    while begin.elapsed() < length {
        let fault = Fault::ALL[random.usize(..Fault::ALL.len())];
        let hold = HOLD.0 + (HOLD.1 - HOLD.0).mul_f64(random.f64());
        say(&format!("{:4} s: {}\n", begin.elapsed().as_secs(), fault.name()));
        if let Err(why) = system.suffer(fault, hold, &mut random).await {
            findings.wrong.push(format!("{}: {why}", fault.name()));
        }
        *findings.faults.entry(fault.name()).or_default() += 1;
        findings.add(traffic.take(), fault.name());
    }
    let trends = samples.trends();
    drop(attack);
    findings.add(traffic.stop(), "the end");
    for (role, trend) in &trends {
        if !trend.is_flat() {
            findings.wrong.push(format!("{role} grows: {trend:?}"));
        }
    }
    say(&format!("\n{}\n\n{}\n\n", verdict_table(&findings), trend_table(&trends)));
    for wrong in findings.wrong.iter().take(EXAMPLES) {
        say(&format!("WRONG: {wrong}\n"));
    }
    let faults: u64 = findings.faults.values().sum();
    let file = report::write(&workspace().join("target"), "soak.json", &json(seed, &findings, &trends));
    let file = file.map_err(|error| format!("target/soak.json: {error}"))?;
    say(&format!("seed {seed}: {faults} faults, {} wrong; {}\n", findings.wrong.len(), file.display()));
    Ok(findings.wrong.is_empty())
}

/// The trend of each process.
type Trends = BTreeMap<&'static str, Trend>;

fn verdict_table(findings: &Findings) -> Table {
    let mut table = table(&["honest requests", "count", "lost", "changed", "during a change"]);
    for (row, tally) in &findings.verdicts {
        let counts = [tally.count, tally.lost, tally.changed, tally.unknown];
        table.add_row([(*row).to_owned()].into_iter().chain(counts.map(|count| count.to_string())));
    }
    table
}

fn trend_table(trends: &Trends) -> Table {
    let mut table =
        table(&["medians of the first and last third", "MiB", "MiB", "descriptors", "descriptors"]);
    for (role, trend) in trends {
        let descriptors = [trend.first, trend.last].map(|usage| usage.descriptors.to_string());
        let memory = [trend.first, trend.last].map(|usage| mib(usage.memory));
        table.add_row([(*role).to_owned()].into_iter().chain(memory).chain(descriptors));
    }
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

fn json(seed: u64, findings: &Findings, trends: &Trends) -> Value {
    let verdicts = findings.verdicts.iter().map(|(row, tally)| {
        let Tally { count, lost, changed, unknown } = tally;
        json!({"name": row, "count": count, "lost": lost, "changed": changed, "duringChange": unknown})
    });
    let trends = trends.iter().map(|(role, trend)| {
        let [first, last] = [trend.first, trend.last]
            .map(|usage| json!({"memory": usage.memory, "descriptors": usage.descriptors}));
        json!({"process": role, "firstThird": first, "lastThird": last, "flat": trend.is_flat()})
    });
    json!({
        "seed": seed, "faults": findings.faults, "verdicts": verdicts.collect::<Value>(),
        "processes": trends.collect::<Value>(), "wrong": findings.wrong,
    })
}
