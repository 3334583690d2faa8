//! A second opinion: wrk, a few callers at once, each asking as fast as it is answered, a connection for each request.

use std::io::{Error, ErrorKind, Result, Write as _};
use std::process::Command;

use tests::report::{Row, median};

use crate::lab::{Lab, Way};

/// Fewer callers than a prober has places on a worker.
const CALLERS: &str = "4";
const ROUNDS: usize = 5;

/// What wrk and Envoy's clock say of one way in one round.
#[derive(Clone, Copy, Debug)]
struct Cost {
    requests_per_second: f64,
    /// Of Envoy, microseconds for each request.
    cpu: f64,
    /// Answers that were no success, and connections that broke.
    failures: f64,
}

/// Measures the ways in turn; nothing where wrk is missing, which is said.
pub(crate) fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rounds: Vec<[Cost; 3]> = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = Vec::new();
        for way in Way::ALL {
            match run(lab, way) {
                Ok(cost) => round.push(cost),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    writeln!(std::io::stdout(), "wrk is not installed: its rows are left out\n")?;
                    return Ok(Vec::new());
                }
                Err(error) => return Err(error),
            }
        }
        rounds.push(round.try_into().map_err(|_| Error::other("three ways"))?);
    }
    let column = |way: usize, figure: fn(&Cost) -> f64| -> Vec<f64> {
        rounds.iter().map(|round| figure(&round[way])).collect()
    };
    let mut rows = Vec::new();
    for (index, way) in Way::ALL.into_iter().enumerate() {
        let rate = median(&column(index, |cost| cost.requests_per_second));
        rows.push(Row::new(format!("wrk, {}", way.name()), rate, "1/s"));
    }
    let ratio = |figure: fn(&Cost) -> f64| -> f64 {
        let ratios: Vec<f64> =
            column(2, figure).iter().zip(column(1, figure)).map(|(filter, plain)| filter / plain).collect();
        median(&ratios)
    };
    rows.push(Row::new("wrk, requests filter / plain", ratio(|cost| cost.requests_per_second), "ratio"));
    rows.push(Row::new("wrk, cpu filter / plain", ratio(|cost| cost.cpu), "ratio"));
    let failures = (0..3).flat_map(|way| column(way, |cost| cost.failures)).sum();
    rows.push(Row::new("wrk, failures", failures, "requests").at_most(0.0));
    Ok(rows)
}

fn run(lab: &Lab, way: Way) -> Result<Cost> {
    let (address, path) = lab.target(way);
    let before = lab.process().cpu();
    let output = Command::new("wrk")
        .args(["--threads", "1", "--connections", CALLERS, "--duration", "2s"])
        .args(["--header", "User-Agent: kube-probe/1.36", "--header", "Accept: */*"])
        .args(["--header", "Connection: close"])
        .arg(format!("http://{address}{path}"))
        .output()?;
    let cpu = lab.process().cpu().saturating_sub(before);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let unread = || Error::other(format!("wrk says what is not understood:\n{text}"));
    let after = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    let rate = after("Requests/sec:").and_then(|rate| rate.trim().parse().ok()).ok_or_else(unread)?;
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in "));
    let requests: f64 = requests.and_then(|(count, _)| count.parse().ok()).ok_or_else(unread)?;
    let other = after("Non-2xx or 3xx responses:").map_or(Ok(0.0), |count| count.trim().parse());
    let numbers =
        |line: &str| -> f64 { line.split([' ', ',']).filter_map(|word| word.parse::<f64>().ok()).sum() };
    let broken = after("Socket errors:").map_or(0.0, numbers);
    Ok(Cost {
        requests_per_second: rate,
        cpu: cpu.as_secs_f64() * 1e6 / requests.max(1.0),
        failures: other.map_err(|_| unread())? + broken,
    })
}
