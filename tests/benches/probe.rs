//! What a probe costs: straight to the application, by a plain Envoy route, and through the filter, in turn. Prints
//! a table and writes `target/bench/probe.json`. A bar that does not hold is reported and is no error; not to be
//! able to measure is one.

#[path = "probe/caller.rs"]
mod caller;
#[path = "probe/deadlines.rs"]
mod deadlines;
#[path = "probe/lab.rs"]
mod lab;
#[path = "probe/rounds.rs"]
mod rounds;
#[path = "probe/wrk.rs"]
mod wrk;

use std::io::Write as _;

use tests::envoy::workspace;
use tests::report::{self, Row};

const NOTES: &str = "\
plain: a listener of the same Envoy with the same settings, without rate limit and wasm filter, and a STATIC cluster
filter: the shipped probe listener, its rate limit raised so far that nobody reaches it
ratio: filter / plain in each round, the median of all rounds; cpu: of the whole Envoy process";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let plan = rounds::Plan::of_arguments(std::env::args())?;
    let lab = runtime.block_on(lab::Lab::start());
    let mut rows: Vec<Row> = rounds::measure(&lab, plan)?;
    rows.extend(wrk::measure(&lab)?);
    rows.extend(deadlines::measure(&lab)?);
    rows.extend(runtime.block_on(lab.memory())?);
    let file = report::write(&workspace().join("target"), "probe", &rows)?;
    writeln!(std::io::stdout(), "{}\n\n{NOTES}\n{}", report::table(&rows), file.display())?;
    runtime.block_on(lab.stop());
    Ok(())
}
