//! Measures the resident memory of each process after all probes, and of the sidecar of a Pod: an
//! Envoy and an agent.

use std::time::Duration;

use kit::process::Process;
use kit::report::Row;
use kit::sidecar::{Builder, Sidecar};
use tokio::time::sleep;

use crate::route::{MeasuredProcess, Route};
use crate::setup::Setup;

const MIB: f64 = 1_048_576.0;
/// Wait until memory that only the start of an agent needs has been released.
const SETTLE: Duration = Duration::from_secs(3);

pub(crate) async fn measure(setup: &Setup) -> Vec<Row> {
    let memory = |wanted: MeasuredProcess| {
        let found = setup.processes.iter().find(|(measured, _)| *measured == wanted);
        mib(found.expect("every process is measured").1)
    };
    let mut rows: Vec<Row> = setup
        .processes
        .iter()
        .map(|(measured, process)| Row::new(format!("memory, {}", measured.name()), mib(*process), "MiB"))
        .collect();
    let plain = memory(MeasuredProcess::PlainEnvoy);
    for route in Route::OURS {
        let process = route.process().expect("an Envoy");
        let name = format!("memory, {}, above Envoy", process.name());
        rows.push(Row::new(name, memory(process) - plain, "MiB").at_most(bar(route)));
    }
    let agent = agent(setup).await;
    rows.push(Row::new("memory, app-health-agent", agent, "MiB"));
    let istio = plain + memory(MeasuredProcess::PilotAgent);
    rows.push(Row::new("memory, Istio's Pod", istio, "MiB"));
    for route in Route::OURS {
        let pod = memory(route.process().expect("an Envoy")) + agent;
        let name = format!("memory, Pod with {}", route.name());
        rows.push(Row::new(name.clone(), pod, "MiB"));
        rows.push(Row::new(format!("{name} / Istio's Pod"), pod / istio, "ratio").at_most(1.0));
    }
    rows
}

/// Returns how much more memory an Envoy with the filter may have than one without, in MiB.
fn bar(route: Route) -> f64 {
    if route == Route::Native { 2.0 } else { 32.0 }
}

/// Returns the memory of an agent beside one of the Envoys. It has no part in a probe, so it runs only
/// now.
async fn agent(setup: &Setup) -> f64 {
    let (envoy, listener) = setup.wasm_envoy();
    let admin = format!("unix:{}", envoy.folder.join("admin.sock").display());
    let data_path = format!("http://{listener}");
    let sidecar: Sidecar = Builder::bare("agent")
        .args(&["--no-envoy", "--admin", &admin, "--data-path", &data_path])
        .start_plain();
    sidecar.until(200, "ready").await;
    sleep(SETTLE).await;
    mib(Process::new(sidecar.pid().as_raw().unsigned_abs()))
}

fn mib(process: Process) -> f64 {
    f64::from(u32::try_from(process.rss()).expect("less than 4 GiB")) / MIB
}
