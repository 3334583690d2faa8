//! Benchmark of our agent in the place of Istio's, beside Istio's, with a real istiod: from its start to Envoy, to the
//! certificate and to readiness, its memory with many names, and a restart while istiod is unavailable. It prints a table and
//! writes `target/bench/sidecar.json`. A missed target is reported and is not an error; a measurement that fails is
//! an error.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use clap::Parser;
use istio_tests::istiod::Istiod;
use istio_tests::pod_sidecar::PodSidecar;
use istio_tests::program::Program;
use istio_tests::secret_client;
use kit::envoy::workspace;
use kit::process::{self, Process};
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row, median};
use kit::vm::documents::NAMESPACE;
use kit::{caller, net, wait};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// An error of the measurement itself.
type Failure = Box<dyn Error + Send + Sync>;

/// Pause between two looks for a process or a file.
const PACE: Duration = Duration::from_millis(1);
/// Pause between two readiness requests; a shorter one would slow down the start that is measured.
const READINESS_PACE: Duration = Duration::from_millis(5);
/// How long an agent stays idle before its memory is measured.
const IDLE: Duration = Duration::from_secs(5);
/// How long the readiness of Istio's agent is awaited while istiod is unavailable.
const PATIENCE: Duration = Duration::from_secs(10);
/// The port of all Services.
const PORT: u16 = 9080;
/// How long the CPU time of an idle agent is measured, and the number of scrapes.
const IDLE_CPU: Duration = Duration::from_secs(30);
const SCRAPES: u32 = 20;
const MIB: f64 = (1 << 20) as f64;
const NOTES: &str = "\
both agents as they are shipped, with the same Envoy, bootstrap template, istiod and API server; the Pod exists as an object only
start: from the execution of the agent, without files of an earlier one, until its Envoy exists, until it serves a certificate,
  and until the first 200 of /healthz/ready; medians of the rounds
memory: pages of the agent that no file backs, after 5 s of idleness with TLS, xDS, SDS and DNS for the given number of Services
CPU: of the agent alone, before the Services exist; a scrape is of all metrics of Envoy and the agent
restart: the whole container, while istiod is unavailable; Istio's agent is not ready within 10 s";

/// Measures our agent in the place of Istio's
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// Starts of each agent with each kind of key; the time that an RSA key takes is random
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Services of the mesh
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    services: u32,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (rows, quiet) = runtime.block_on(measure(&Arguments::parse()))?;
    let file = report::write(&workspace().join("target"), "sidecar", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}\n{}", quiet.summary(), file.display())?;
    Ok(())
}

const PROGRAMS: [Program; 2] = [Program::Istios, Program::Ours];

/// The variables of the agent that choose the kind of its key.
type Key = &'static [(&'static str, &'static str)];
const RSA: Key = &[];
const ECDSA: Key = &[("ECC_SIGNATURE_ALGORITHM", "ECDSA")];

/// Milliseconds from the start of an agent.
#[derive(Default)]
struct Start {
    envoy: f64,
    certificate: f64,
    ready: f64,
}

async fn measure(arguments: &Arguments) -> Result<(Vec<Row>, QuietRounds), Failure> {
    let mut quiet = QuietRounds::default();
    let mut istiod = Istiod::start_with_auto_mtls("bench-sidecar").await;
    istiod.cluster.apply(&sidecar().to_string());
    let mut rows = starts(arguments.rounds, &istiod, &mut quiet).await?;
    for program in PROGRAMS {
        rows.extend(cpu(program, &istiod).await);
    }
    for services in [1, arguments.services] {
        create_services(&istiod, services);
        for program in PROGRAMS {
            let name = format!("anonymous memory, {services} Services, {}", program.name());
            let row = Row::new(name, idle_memory(program, &istiod, services).await? / MIB, "MiB");
            rows.push(if program == Program::Ours { row.at_most(3.0) } else { row });
        }
    }
    rows.push(restart(&mut istiod).await?);
    for program in PROGRAMS {
        #[expect(clippy::cast_precision_loss, reason = "bytes of a program")]
        let size = std::fs::metadata(program.path())?.len() as f64 / MIB;
        let row = Row::new(format!("file of the program, {}", program.name()), size, "MiB");
        rows.push(if program == Program::Ours { row.at_most(8.0) } else { row });
    }
    rows.extend(quiet.rows());
    Ok((rows, quiet))
}

/// Starts each agent with each kind of key in turn, and compares the medians.
async fn starts(rounds: u32, istiod: &Istiod, quiet: &mut QuietRounds) -> Result<Vec<Row>, Failure> {
    let mut starts: [[Vec<Start>; 2]; 2] = Default::default();
    let mut names = 0..;
    for _ in 0..rounds {
        for (program, starts) in PROGRAMS.into_iter().zip(&mut starts) {
            for (key, starts) in [RSA, ECDSA].into_iter().zip(starts) {
                let number = names.next().unwrap_or_default();
                starts.push(quiet.round(async || start(program, number, key, istiod).await).await?);
            }
        }
    }
    let mut rows = Vec::new();
    for (what, key, of) in [
        ("Envoy exists", 0, (|start: &Start| start.envoy) as fn(&Start) -> f64),
        ("a certificate with an RSA key", 0, |start| start.certificate),
        ("a certificate with an ECDSA key", 1, |start| start.certificate),
        ("ready", 0, |start| start.ready),
    ] {
        let [theirs, ours] =
            starts.each_ref().map(|starts| median(&starts[key].iter().map(of).collect::<Vec<_>>()));
        for (program, value) in PROGRAMS.into_iter().zip([theirs, ours]) {
            rows.push(Row::new(format!("start until {what}, {}", program.name()), value, "ms"));
        }
        rows.push(
            Row::new(format!("start until {what}, app-health-agent / pilot-agent"), ours / theirs, "ratio")
                .at_most(0.5),
        );
    }
    Ok(rows)
}

/// Starts an agent in a Pod of its own.
async fn start(program: Program, number: u32, key: Key, istiod: &Istiod) -> Result<Start, Failure> {
    let name = format!("start-{number}");
    let _ = std::fs::remove_dir_all(istiod.folder.join(&name));
    let mut pod = PodSidecar::prepare(program, &name, istiod, net::loopback(), key);
    let begun = Instant::now();
    pod.start_container();
    let millis = || begun.elapsed().as_secs_f64() * 1e3;
    let mut found = Start::default();
    let envoy = async {
        while process::children(pod.pid()).is_empty() {
            sleep(PACE).await;
        }
        millis()
    };
    let certificate = async {
        while !pod.secrets().exists() || !secret_client::exists(&pod.secrets(), "default").await {
            sleep(PACE).await;
        }
        millis()
    };
    let ready = async {
        while caller::get(pod.status, "/healthz/ready", &[]).await.status != 200 {
            sleep(READINESS_PACE).await;
        }
        millis()
    };
    let all = async { tokio::join!(envoy, certificate, ready) };
    let measured = timeout(wait::timeout(), all).await;
    (found.envoy, found.certificate, found.ready) =
        measured.map_err(|_| format!("{program:?} is not ready:\n{}", pod.log()))?;
    Ok(found)
}

/// The only listener of the Envoys, so that they need no redirected traffic.
fn sidecar() -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "Sidecar",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"egress": [{
            "port": {"number": PORT, "protocol": "HTTP", "name": "http"},
            "bind": net::loopback().to_string(),
            "captureMode": "NONE",
            "hosts": ["./*"],
        }]},
    })
}

fn create_services(istiod: &Istiod, count: u32) {
    let mut list = String::new();
    // Those of the first measurement exist already.
    for number in 0..count {
        let metadata = format!("{{name: service-{number}, namespace: {NAMESPACE}}}");
        let spec = format!("{{ports: [{{name: http, port: {PORT}}}]}}");
        let _ = writeln!(list, "---\napiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {spec}");
    }
    istiod.cluster.kubectl_ok(&["apply", "-f", "-"], &list);
}

/// Returns the bytes of an idle agent.
async fn idle_memory(program: Program, istiod: &Istiod, services: u32) -> Result<f64, Failure> {
    // The path of a socket has at most 107 bytes.
    let name = format!("idle-{services}-{program:?}").to_lowercase();
    let pod = PodSidecar::start_as(program, &name, istiod, net::loopback(), &[]);
    pod.until_ready().await;
    let last = format!("service-{}", services.saturating_sub(1));
    let what = || format!("{program:?} knows {last}:\n{}", pod.log());
    wait::until_or(what, async || pod.names().await.contains(&last)).await;
    sleep(IDLE).await;
    let process = Process::new(pod.pid().as_raw().unsigned_abs());
    #[expect(clippy::cast_precision_loss, reason = "bytes of a process")]
    Ok(process.anonymous() as f64)
}

/// Measures the CPU time of an idle agent, and that of a scrape.
async fn cpu(program: Program, istiod: &Istiod) -> [Row; 2] {
    let name = format!("cpu-{program:?}").to_lowercase();
    let pod = PodSidecar::start_as(program, &name, istiod, net::loopback(), &[]);
    pod.until_ready().await;
    sleep(IDLE).await;
    let process = Process::new(pod.pid().as_raw().unsigned_abs());
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let before = process.cpu();
    sleep(IDLE_CPU).await;
    let idle = process.cpu() - before;
    let in_a_minute = millis(idle) * 60.0 / IDLE_CPU.as_secs_f64();
    let before = process.cpu();
    for _ in 0..SCRAPES {
        caller::get(pod.status, "/stats/prometheus", &[]).await;
    }
    let scrape = millis(process.cpu() - before) / f64::from(SCRAPES);
    [
        Row::new(format!("CPU time in an idle minute, {}", program.name()), in_a_minute, "ms"),
        Row::new(format!("CPU time of a scrape, {}", program.name()), scrape, "ms"),
    ]
}

/// Restarts a container while istiod is unavailable.
async fn restart(istiod: &mut Istiod) -> Result<Row, Failure> {
    let mut pods = PROGRAMS.map(|program| {
        PodSidecar::start_as(
            program,
            &format!("restart-{program:?}").to_lowercase(),
            istiod,
            net::loopback(),
            &[],
        )
    });
    for pod in &pods {
        pod.until_ready().await;
    }
    let stored = ["service-0".to_owned()];
    wait::until("the names are stored", async || pods[1].has_stored(&stored)).await;
    istiod.kill();
    let mut times = Vec::new();
    for pod in &mut pods {
        pod.kill();
        let begun = Instant::now();
        pod.start_container();
        let is_ready = async {
            while caller::get(pod.status, "/healthz/ready", &[]).await.status != 200 {
                sleep(READINESS_PACE).await;
            }
        };
        times.push(timeout(PATIENCE, is_ready).await.ok().map(|()| begun.elapsed()));
    }
    let [theirs, ours] = [times[0], times[1]];
    if let Some(time) = theirs {
        return Err(format!("Istio's agent was ready after {time:?} without istiod").into());
    }
    let ours = ours.ok_or_else(|| format!("not ready without istiod:\n{}", pods[1].log()))?;
    Ok(Row::new("restart while istiod is unavailable, until ready", ours.as_secs_f64() * 1e3, "ms")
        .at_most(2000.0))
}
