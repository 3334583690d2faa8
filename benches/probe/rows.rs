//! Computes the result rows: the median of each figure, and the ratios to the plain route and to
//! pilot-agent with their targets.

use kit::report::{Row, median, quantile};

use crate::rounds::Cost;
use crate::route::{MeasuredProcess, Route};

/// Targets relative to the plain route, with kubelet's prober as client.
struct Bars {
    p50: f64,
    p99: Option<f64>,
    cpu: f64,
}

fn bars(route: Route) -> Option<Bars> {
    match route {
        Route::Wasm => Some(Bars { p50: 1.10, p99: None, cpu: 1.20 }),
        Route::Native => Some(Bars { p50: 1.05, p99: Some(1.05), cpu: 1.10 }),
        Route::WasmReuse | Route::NativeReuse => Some(Bars { p50: 1.0, p99: None, cpu: 1.0 }),
        Route::Direct | Route::Plain | Route::Agent | Route::PilotAgent => None,
    }
}

/// Returns the targets of p50, p99 and CPU time relative to pilot-agent.
fn pilot_agent_bars(route: Route) -> [f64; 3] {
    if route == Route::Agent { [0.85, 0.85, 0.6] } else { [1.0; 3] }
}

/// Extracts a figure from a cost; `None` if the route has no process of its own.
type Figure = fn(&Cost) -> Option<f64>;
const P50: Figure = |cost| Some(cost.p50);
const P99: Figure = |cost| Some(cost.p99);
/// CPU time of the process between client and application.
const CPU: Figure = |cost| cost.cpu(cost.route.process()?);

/// Returns the rows for kubelet's prober as client.
pub(crate) fn kubelet(costs: &[Cost]) -> Vec<Row> {
    let mut rows = Vec::new();
    for route in Route::ALL {
        rows.extend(row(costs, "p50", route, P50));
        rows.extend(row(costs, "p99", route, P99));
    }
    for route in Route::ALL {
        for process in
            route.process().into_iter().chain([MeasuredProcess::Application, MeasuredProcess::Oracle])
        {
            rows.extend(row(costs, &format!("cpu of {},", process.name()), route, |cost| cost.cpu(process)));
        }
    }
    for route in Route::COMPARED {
        let bars = bars(route);
        let bar = |pick: fn(&Bars) -> Option<f64>| bars.as_ref().and_then(pick);
        for (name, figure, bar) in [
            ("p50", P50, bar(|bars| Some(bars.p50))),
            ("p99", P99, bar(|bars| bars.p99)),
            ("cpu", CPU, bar(|bars| Some(bars.cpu))),
        ] {
            let Some([median, lowest, highest]) = ratio(costs, name, [route, Route::Plain], figure) else {
                continue;
            };
            rows.push(match bar {
                Some(bar) => median.at_most(bar),
                None => median,
            });
            rows.extend([lowest, highest]);
        }
    }
    for route in Route::OURS {
        let figures = [("p50", P50), ("p99", P99), ("cpu", CPU)];
        for ((name, figure), bar) in figures.into_iter().zip(pilot_agent_bars(route)) {
            let ratio = ratio(costs, name, [route, Route::PilotAgent], figure);
            rows.extend(ratio.map(|[median, ..]| median.at_most(bar)));
        }
    }
    rows
}

/// Returns the rows for the light client.
pub(crate) fn light(costs: &[Cost]) -> Vec<Row> {
    let mut rows: Vec<Row> =
        Route::ALL.into_iter().filter_map(|route| row(costs, "light caller: p50", route, P50)).collect();
    for route in Route::COMPARED {
        for (name, figure) in [("light caller: p50", P50), ("light caller: cpu", CPU)] {
            rows.extend(ratio(costs, name, [route, Route::Plain], figure).map(|[median, ..]| median));
        }
    }
    rows
}

/// Returns the figure of each round.
fn column(costs: &[Cost], route: Route, figure: impl Fn(&Cost) -> Option<f64>) -> Vec<f64> {
    costs.iter().filter(|cost| cost.route == route).filter_map(figure).collect()
}

/// Returns the median of a figure; `None` without values.
fn row(costs: &[Cost], name: &str, route: Route, figure: impl Fn(&Cost) -> Option<f64>) -> Option<Row> {
    let column = column(costs, route, figure);
    (!column.is_empty()).then(|| Row::new(format!("{name} {}", route.name()), median(&column), "us"))
}

/// Returns the ratios of two routes in each round: median, lowest, highest.
fn ratio(costs: &[Cost], name: &str, routes: [Route; 2], figure: Figure) -> Option<[Row; 3]> {
    let [ours, theirs] = routes.map(|route| column(costs, route, figure));
    let ratios: Vec<f64> = ours.into_iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let [ours, theirs] = routes.map(Route::name);
    let row = |which: &str, place: f64| {
        Row::new(format!("{name} {ours} / {theirs}{which}"), quantile(&ratios, place), "ratio")
    };
    (!ratios.is_empty()).then(|| [row("", 0.5), row(", lowest round", 0.0), row(", highest round", 1.0)])
}
