//! Benchmark of the memory that a node pays for: what the kernel charges for one more Pod, what all Pods of a
//! node share, and the peak during many probes. It prints a table and writes `target/bench/memory.json`. A
//! missed target is reported and is not an error; a measurement that fails is an error. It needs root, to
//! create control groups.

#[path = "memory/program.rs"]
mod program;

use std::error::Error;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use kit::app::counted::{CountedApp, Habit};
use kit::cgroup::{Cgroup, Charged};
use kit::envoy::workspace;
use kit::load::{self, Load, kubelet_request};
use kit::report::{self, Row};
use kit::{launcher, net};
use tokio::time::sleep;

use crate::program::{Pod, Program};

/// An error of the measurement itself.
type Failure = Box<dyn Error + Send + Sync>;

const MIB: f64 = 1_048_576.0;
/// The numbers of Pods on the node.
const PODS: [usize; 3] = [1, 5, 20];
/// Probes of each Pod before memory is read.
const PROBES: u64 = 1000;
/// Probes of one Pod while its peak is measured.
const FLOOD: u64 = 20_000;
/// Wait until memory that only the start and probes need has been released.
const SETTLE: Duration = Duration::from_secs(3);

const NOTES: &str = "\
charged: by the kernel to a control group with 1, 5 and 20 Pods, after 1000 probes of each; one more Pod: the difference of 20 and 1, by 19
anonymous: not a copy of a file; kernel: sockets, page tables and others
once per node: the mapped pages of files, which all Pods share, with 20 Pods
peak: resident memory without files during 20000 probes, 64 at a time, of one Pod
each program without the others: agents and pilot-agent without an Envoy, Envoys without an agent";

/// Measures the memory that the kernel charges for Pods
#[derive(Clone, Debug, clap::Parser)]
struct Arguments {
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<ExitCode, Failure> {
    if let Some(code) = launcher::run_if_requested() {
        return Ok(code);
    }
    launcher::enable();
    let Arguments { bench: _ } = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(measure())?;
    let file = report::write(&workspace().join("target"), "memory", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}", file.display())?;
    Ok(ExitCode::SUCCESS)
}

async fn measure() -> Result<Vec<Row>, Failure> {
    let app = CountedApp::start(net::loopback(), Habit::keep_alive());
    let mut rows = Vec::new();
    for program in Program::ALL {
        rows.extend(measure_program(program, app.address).await?);
    }
    Ok(rows)
}

async fn measure_program(program: Program, app: SocketAddr) -> Result<Vec<Row>, Failure> {
    let group = Cgroup::new("bench")?;
    launcher::set_group(Some(group.members()));
    let (mut pods, mut charged) = (Vec::<Pod>::new(), Vec::new());
    for count in PODS {
        while pods.len() < count {
            pods.push(program.start(app).await);
        }
        for pod in &pods {
            let succeeded = probe(pod, PROBES, 1).await;
            if succeeded != PROBES {
                return Err(format!("{}: {succeeded} of {PROBES} probes succeeded", program.name()).into());
            }
        }
        sleep(SETTLE).await;
        charged.push(group.charged()?);
    }
    launcher::set_group(None);
    let files: u64 = pods.iter().map(|pod| pod.process.share_of_files()).sum();
    let process = pods[0].process;
    process.reset_peak_rss();
    // Most of them exceed the limits of probes in flight.
    probe(&pods[0], FLOOD, 64).await;
    let peak = process.peak_rss() - process.resident_files();
    drop(pods);
    Ok(rows(program, &charged, files, peak))
}

fn rows(program: Program, charged: &[Charged], files: u64, peak: u64) -> Vec<Row> {
    let (first, last) = (charged[0], charged[charged.len() - 1]);
    let more = PODS[PODS.len() - 1] - PODS[0];
    let one_more = |of: fn(Charged) -> u64| (mib(of(last)) - mib(of(first))) / more as f64;
    let row = |what: &str, value: f64| Row::new(format!("{}, {what}", program.name()), value, "MiB");
    let anonymous = row("one more Pod, anonymous", one_more(|charged| charged.anonymous));
    let mut rows = vec![
        program.bar().map_or(anonymous.clone(), |bar| anonymous.at_most(bar)),
        row("one more Pod, kernel", one_more(|charged| charged.kernel)),
        row("once per node, files", mib(files)),
        row("peak during a flood of probes, anonymous", mib(peak)),
    ];
    for (count, charged) in PODS.iter().zip(charged) {
        rows.push(row(&format!("working set of {count} Pods"), mib(charged.working_set)));
    }
    rows
}

/// Sends probes to a Pod, this many at the same time. Returns how many succeeded.
async fn probe(pod: &Pod, total: u64, at_once: u64) -> u64 {
    let request = kubelet_request(pod.address, pod.path);
    let load = Load { total, at_once, per_second: None };
    // Several source addresses, so that ephemeral ports are not exhausted.
    let source = |number: u64| IpAddr::V4(Ipv4Addr::new(127, 9, 0, number.to_le_bytes()[0]));
    load.run(|number| load::ask(Some(source(number)), pod.address, &request)).await.of(200)
}

fn mib(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes).expect("less than 4 GiB")) / MIB
}
