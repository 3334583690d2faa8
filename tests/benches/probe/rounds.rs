//! The ways in turn, probe by probe: latency and processor time, compared within each round.

use std::io::{Error, Result};
use std::time::Duration;

use tests::report::{Row, median, quantile};

use crate::lab::{Lab, WARM_UP, Way};

/// Probes of a way before the next one has its turn: what else the machine does meets all ways alike.
const BLOCK: usize = 100;
/// Against the plain route: latency within 3 %, processor time within 10 %.
const P50_BAR: f64 = 1.03;
const CPU_BAR: f64 = 1.10;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    rounds: usize,
    probes: usize,
}

impl Plan {
    /// `--rounds` (11) and `--probes` of each way in a round (3000).
    pub(crate) fn of_arguments(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut plan = Self { rounds: 11, probes: 3000 };
        // Cargo adds --bench.
        let mut arguments = arguments.skip(1).filter(|argument| argument != "--bench");
        while let Some(name) = arguments.next() {
            let wrong = || Error::other(format!("{name}: --rounds and --probes take a number from 1 on"));
            let place = match name.as_str() {
                "--rounds" => &mut plan.rounds,
                "--probes" => &mut plan.probes,
                _ => return Err(wrong()),
            };
            let value: Option<usize> = arguments.next().and_then(|value| value.parse().ok());
            *place = value.filter(|value| *value > 0).ok_or_else(wrong)?;
        }
        Ok(plan)
    }
}

/// What one way cost in one round, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    p50: f64,
    p99: f64,
    /// Of Envoy, for each probe.
    cpu: f64,
}

/// Measures all rounds.
pub(crate) fn measure(lab: &Lab, plan: Plan) -> Result<Vec<Row>> {
    for way in Way::ALL {
        let caller = lab.caller(way);
        for _ in 0..WARM_UP {
            caller.ask(200)?;
        }
    }
    let rounds =
        (0..plan.rounds).map(|number| round(lab, number, plan.probes)).collect::<Result<Vec<_>>>()?;

    let column = |way: usize, figure: fn(&Cost) -> f64| -> Vec<f64> {
        rounds.iter().map(|round| figure(&round[way])).collect()
    };
    let mut rows = Vec::new();
    for (index, way) in Way::ALL.into_iter().enumerate() {
        rows.push(Row::new(format!("p50 {}", way.name()), median(&column(index, |cost| cost.p50)), "us"));
        rows.push(Row::new(format!("p99 {}", way.name()), median(&column(index, |cost| cost.p99)), "us"));
        if way != Way::Direct {
            let name = format!("Envoy's cpu a probe, {}", way.name());
            rows.push(Row::new(name, median(&column(index, |cost| cost.cpu)), "us"));
        }
    }
    let ratio = |figure: fn(&Cost) -> f64| -> Vec<f64> {
        let (filter, plain) = (column(2, figure), column(1, figure));
        filter.into_iter().zip(plain).map(|(filter, plain)| filter / plain).collect()
    };
    let (p50, cpu) = (ratio(|cost| cost.p50), ratio(|cost| cost.cpu));
    rows.push(Row::new("p50 filter / plain", median(&p50), "ratio").at_most(P50_BAR));
    rows.push(Row::new("p50 filter / plain, lowest round", quantile(&p50, 0.0), "ratio"));
    rows.push(Row::new("p50 filter / plain, highest round", quantile(&p50, 1.0), "ratio"));
    rows.push(Row::new("cpu filter / plain", median(&cpu), "ratio").at_most(CPU_BAR));
    rows.push(Row::new("cpu filter / plain, lowest round", quantile(&cpu, 0.0), "ratio"));
    rows.push(Row::new("cpu filter / plain, highest round", quantile(&cpu, 1.0), "ratio"));
    Ok(rows)
}

/// One round: blocks of each way in turn. Who begins changes from round to round.
fn round(lab: &Lab, number: usize, probes: usize) -> Result<[Cost; 3]> {
    let process = lab.process();
    let callers = Way::ALL.map(|way| lab.caller(way));
    let mut latencies: [Vec<f64>; 3] = Default::default();
    let mut cpu = [Duration::ZERO; 3];
    while latencies[0].len() < probes {
        for turn in 0..3 {
            let way = (number + turn) % 3;
            let before = process.cpu();
            for _ in 0..BLOCK {
                latencies[way].push(callers[way].ask(200)?.as_secs_f64() * 1e6);
            }
            cpu[way] += process.cpu().saturating_sub(before);
        }
    }
    Ok([0, 1, 2].map(|way| Cost {
        p50: median(&latencies[way]),
        p99: quantile(&latencies[way], 0.99),
        cpu: cpu[way].as_secs_f64() * 1e6 / f64::from(u32::try_from(latencies[way].len()).expect("few")),
    }))
}
