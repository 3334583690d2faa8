//! Sends a million mixed requests through the filter in wasmtime and measures host calls for each
//! probe, memory before and after, and the size of the module. It writes
//! `target/bench/filter.json`. The exit code is not 0 only if a measurement fails.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use serde_json::{Value, json};
use wasm_host::scenario::Scenario;
use wasm_host::scenarios::{self, GRPC, HTTP, TABLE, TCP};
use wasm_host::{Filter, FilterFile, Vm};

const REQUESTS: u64 = 1_000_000;
/// Requests before the first measurement, so that one-time allocations have happened.
const WARM: u64 = 10_000;

/// One figure; it holds if `value` is at most `bar`.
struct Figure {
    name: &'static str,
    value: u64,
    unit: &'static str,
    bar: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` starts benchmarks without `--bench`, to check that they run.
    let requests = if env::args().any(|argument| argument == "--bench") { REQUESTS } else { WARM };
    let file = FilterFile::from_environment();
    let figures = measure(&Filter::from_file(&file)?, fs::metadata(&file.wasm)?.len(), requests)?;
    for Figure { name, value, unit, bar } in &figures {
        let holds = if value <= bar { "holds" } else { "DOES NOT HOLD" };
        println!("{name:36} {value:>9} {unit:6} at most {bar:>7}: {holds}");
    }
    write(&figures)?;
    Ok(())
}

fn measure(filter: &Filter, file_bytes: u64, requests: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut vm = Vm::start(filter, scenarios::host())?;
    if !vm.configure(TABLE)? {
        return Err(format!("configuration = {:?}: rejected", vm.transcript().log()).into());
    }
    let figure = |name, value, unit, bar| Figure { name, value, unit, bar };
    let http = Scenario::get(HTTP).application(200, [("server", "x")]).chunk("small", true);
    let tcp = Scenario::get(TCP).application::<&str>(200, []);
    let grpc = Scenario::get(GRPC).callout(scenarios::grpc(Some(1), "0"));
    let mut figures = vec![
        figure("filter_file", file_bytes, "bytes", 204_800),
        figure("filter_memory_at_start", filter.initial_pages() << 16, "bytes", 131_072),
        figure("filter_host_calls_http", host_calls(&mut vm, &http)?, "calls", 11),
        figure("filter_host_calls_tcp", host_calls(&mut vm, &tcp)?, "calls", 10),
        figure("filter_host_calls_grpc", host_calls(&mut vm, &grpc)?, "calls", 20),
        figure("filter_host_calls_not_ours", host_calls(&mut vm, &Scenario::get("/"))?, "calls", 1),
    ];
    mixed(&mut vm, 0..WARM)?;
    let (bytes, series) = (vm.memory_bytes(), vm.host().metrics.names().len());
    mixed(&mut vm, WARM..requests)?;
    let new_series = u64::try_from(vm.host().metrics.names().len() - series)?;
    figures.extend([
        figure("filter_memory_after_a_million", vm.memory_bytes(), "bytes", 196_608),
        figure("filter_memory_growth", vm.memory_bytes() - bytes, "bytes", 0),
        figure("filter_new_series", new_series, "series", 0),
        figure("filter_traps", u64::from(vm.traps), "traps", 0),
    ]);
    Ok(figures)
}

/// Counts the host calls of one scenario.
fn host_calls(vm: &mut Vm, scenario: &Scenario) -> Result<u64, Box<dyn Error>> {
    vm.host_mut().calls.reset();
    scenario.run(vm)?;
    Ok(vm.host().calls.total().into())
}

/// Two of three requests are the scenarios in turn; the third has an undeclared path, a different
/// one each time.
fn mixed(vm: &mut Vm, numbers: std::ops::Range<u64>) -> Result<(), Box<dyn Error>> {
    let all = scenarios::all();
    let mut scenarios = all.iter().cycle();
    for number in numbers {
        if number % 3 == 0 {
            Scenario::get(format!("/app-health/{number}%0a/livez")).run(vm)?;
        } else if let Some((_, scenario)) = scenarios.next() {
            scenario.run(vm)?;
        }
        vm.host_mut().transcript.clear();
    }
    Ok(())
}

fn write(figures: &[Figure]) -> Result<(), Box<dyn Error>> {
    let rows: Vec<Value> = figures
        .iter()
        .map(|Figure { name, value, unit, bar }| {
            json!({"name": name, "value": value, "unit": unit, "bar": bar, "holds": value <= bar})
        })
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("filter.json"), serde_json::to_string_pretty(&rows)? + "\n")?;
    Ok(())
}
