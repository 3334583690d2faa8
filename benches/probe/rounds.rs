//! Measures latency and CPU time of each route in turn, block by block and round by round.

use std::io::Result;
use std::time::Duration;

use kit::report::{median, quantile};

use crate::client::Client;
use crate::lab::{Lab, Part, WARM_UP, Way};

/// Probes in a block; short blocks make other load of the machine affect all routes alike.
const BLOCK: u32 = 100;

/// Cost of one route in one round, in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) way: Way,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    cpu: Vec<(Part, f64)>,
}

impl Cost {
    /// Returns the CPU time of a process for one probe; `None` if the process is not visible.
    pub(crate) fn cpu(&self, part: Part) -> Option<f64> {
        self.cpu.iter().find(|(found, _)| *found == part).map(|(_, cpu)| *cpu)
    }
}

/// Measures `rounds` rounds. The first route changes from round to round.
pub(crate) async fn measure(lab: &Lab, client: Client, rounds: u32, probes: u32) -> Result<Vec<Cost>> {
    for (_, target) in &lab.ways {
        client.ask(lab, target, WARM_UP).await?;
    }
    let mut costs = Vec::new();
    for (_, first) in (0..rounds).zip((0..lab.ways.len()).cycle()) {
        costs.extend(round(lab, client, first, probes).await?);
    }
    Ok(costs)
}

/// Measures one round, in blocks of each route in turn.
async fn round(lab: &Lab, client: Client, first: usize, probes: u32) -> Result<Vec<Cost>> {
    let ways = lab.ways.len();
    let mut latencies = vec![Vec::new(); ways];
    let mut spent = vec![vec![Duration::ZERO; lab.processes.len()]; ways];
    let blocks = probes.div_ceil(BLOCK);
    for _ in 0..blocks {
        for way in (first..ways).chain(0..first) {
            let before = cpu(lab);
            latencies[way].extend(client.ask(lab, &lab.ways[way].1, BLOCK).await?);
            for ((spent, before), after) in spent[way].iter_mut().zip(before).zip(cpu(lab)) {
                *spent += after.saturating_sub(before);
            }
        }
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(blocks * BLOCK);
    let cost = |index: usize| Cost {
        way: lab.ways[index].0,
        p50: median(&latencies[index]),
        p99: quantile(&latencies[index], 0.99),
        cpu: lab.processes.iter().zip(&spent[index]).map(|((part, _), time)| (*part, each(*time))).collect(),
    };
    Ok((0..ways).map(cost).collect())
}

/// Returns the CPU time of each process so far.
fn cpu(lab: &Lab) -> Vec<Duration> {
    lab.processes.iter().map(|(_, process)| process.cpu()).collect()
}
