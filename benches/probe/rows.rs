//! Computes the result rows: the median of each figure, and the ratios to the plain route with
//! their targets.

use kit::report::{Row, median, quantile};

use crate::lab::{Part, Way};
use crate::rounds::Cost;

/// Targets for the filter relative to the plain route, with kubelet's prober as client: latency
/// within 3 %, CPU time within 10 %.
const P50_BAR: f64 = 1.03;
const CPU_BAR: f64 = 1.10;

/// Extracts a figure from a cost; `None` if the process is not visible.
type Figure = fn(&Cost) -> Option<f64>;
const P50: Figure = |cost| Some(cost.p50);
const P99: Figure = |cost| Some(cost.p99);
/// CPU time of the process between client and application.
const CPU: Figure = |cost| cost.cpu(cost.way.part()?);

/// Returns the rows for kubelet's prober as client.
pub(crate) fn kubelet(costs: &[Cost]) -> Vec<Row> {
    let mut rows = Vec::new();
    for way in Way::ALL {
        rows.extend(row(costs, "p50", way, P50));
        rows.extend(row(costs, "p99", way, P99));
    }
    for way in Way::ALL {
        for part in way.part().into_iter().chain([Part::Application, Part::Oracle]) {
            rows.extend(row(costs, &format!("cpu of {},", part.name()), way, |cost| cost.cpu(part)));
        }
    }
    for way in [Way::Filter, Way::PilotAgent] {
        for (name, figure, bar) in [("p50", P50, P50_BAR), ("cpu", CPU, CPU_BAR)] {
            let Some([median, lowest, highest]) = ratio(costs, name, way, figure) else { continue };
            rows.push(if way == Way::Filter { median.at_most(bar) } else { median });
            rows.extend([lowest, highest]);
        }
    }
    rows
}

/// Returns the rows for the light client.
pub(crate) fn light(costs: &[Cost]) -> Vec<Row> {
    let mut rows: Vec<Row> =
        Way::ALL.into_iter().filter_map(|way| row(costs, "light caller: p50", way, P50)).collect();
    for way in [Way::Filter, Way::PilotAgent] {
        for (name, figure) in [("light caller: p50", P50), ("light caller: cpu", CPU)] {
            rows.extend(ratio(costs, name, way, figure).map(|[median, ..]| median));
        }
    }
    rows
}

/// Returns the figure of each round.
fn column(costs: &[Cost], way: Way, figure: impl Fn(&Cost) -> Option<f64>) -> Vec<f64> {
    costs.iter().filter(|cost| cost.way == way).filter_map(figure).collect()
}

/// Returns the median of a figure; `None` without values.
fn row(costs: &[Cost], name: &str, way: Way, figure: impl Fn(&Cost) -> Option<f64>) -> Option<Row> {
    let column = column(costs, way, figure);
    (!column.is_empty()).then(|| Row::new(format!("{name} {}", way.name()), median(&column), "us"))
}

/// Returns the ratios of a route to the plain one in each round: median, lowest, highest.
fn ratio(costs: &[Cost], name: &str, way: Way, figure: Figure) -> Option<[Row; 3]> {
    let (ours, plain) = (column(costs, way, figure), column(costs, Way::Plain, figure));
    let ratios: Vec<f64> = ours.into_iter().zip(plain).map(|(ours, plain)| ours / plain).collect();
    let row = |which: &str, place: f64| {
        Row::new(format!("{name} {} / plain{which}", way.name()), quantile(&ratios, place), "ratio")
    };
    (!ratios.is_empty()).then(|| [row("", 0.5), row(", lowest round", 0.0), row(", highest round", 1.0)])
}
