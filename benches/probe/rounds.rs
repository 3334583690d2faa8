//! Measures latency and CPU time of each route in turn, block by block and round by round.

use std::io::Result;
use std::time::Duration;

use kit::quiet_rounds::QuietRounds;
use kit::report::{median, quantile};

use crate::client::Client;
use crate::pace::BLOCK;
use crate::route::{MeasuredProcess, Route};
use crate::setup::{Setup, WARM_UP};

/// Cost of one route in one round, in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) route: Route,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    cpu: Vec<(MeasuredProcess, f64)>,
}

impl Cost {
    /// Returns the CPU time of a process for one probe.
    pub(crate) fn cpu(&self, process: MeasuredProcess) -> Option<f64> {
        self.cpu.iter().find(|(found, _)| *found == process).map(|(_, cpu)| *cpu)
    }
}

/// Measures `rounds` rounds. The first route changes from round to round.
pub(crate) async fn measure(
    setup: &Setup,
    client: Client,
    quiet: &mut QuietRounds,
    (rounds, probes): (u32, u32),
) -> Result<Vec<Cost>> {
    for (route, target) in &setup.routes {
        for _ in 0..WARM_UP / BLOCK {
            setup.pace.wait(*route).await;
            client.ask(setup, target, BLOCK).await?;
        }
    }
    let mut costs = Vec::new();
    for (_, first) in (0..rounds).zip((0..setup.routes.len()).cycle()) {
        costs.extend(quiet.round(async || round(setup, client, first, probes).await).await?);
    }
    Ok(costs)
}

/// Measures one round, in blocks of each route in turn.
async fn round(setup: &Setup, client: Client, first: usize, probes: u32) -> Result<Vec<Cost>> {
    let routes = setup.routes.len();
    let mut latencies = vec![Vec::new(); routes];
    let mut spent = vec![vec![Duration::ZERO; setup.processes.len()]; routes];
    let blocks = probes.div_ceil(BLOCK);
    for _ in 0..blocks {
        for route in (first..routes).chain(0..first) {
            let (name, target) = &setup.routes[route];
            setup.pace.wait(*name).await;
            let before = cpu(setup);
            latencies[route].extend(client.ask(setup, target, BLOCK).await?);
            for ((spent, before), after) in spent[route].iter_mut().zip(before).zip(cpu(setup)) {
                *spent += after.saturating_sub(before);
            }
        }
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(blocks * BLOCK);
    let cost = |index: usize| Cost {
        route: setup.routes[index].0,
        p50: median(&latencies[index]),
        p99: quantile(&latencies[index], 0.99),
        cpu: setup
            .processes
            .iter()
            .zip(&spent[index])
            .map(|((process, _), time)| (*process, each(*time)))
            .collect(),
    };
    Ok((0..routes).map(cost).collect())
}

/// Returns the CPU time of each process so far.
fn cpu(setup: &Setup) -> Vec<Duration> {
    setup.processes.iter().map(|(_, process)| process.cpu()).collect()
}
