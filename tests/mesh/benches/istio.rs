//! Benchmark of our agent in Pods of an Istio mesh, beside Istio's, on a node of its own: memory by control groups,
//! the time from a Pod's creation to its readiness, CPU time with probes and scrapes, and requests that fail during a
//! rollout and while istiod is unavailable. It prints a table and
//! writes `target/bench/istio.json`. A missed target is reported and is not an error; a measurement that fails is an
//! error.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use clap::Parser;
use kit::cgroup::Cgroup;
use kit::docker::archive::BUSYBOX;
use kit::envoy::workspace;
use kit::process::Process;
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row, median};
use kubernetes_tests::node::{Namespace, address, condition, http_get};
use mesh_tests::Mesh;
use mesh_tests::rollout::Rollout;
use mesh_tests::scenario::Scenario;
use mesh_tests::sidecar::{self, Program};
use mesh_tests::workloads::{Agent, Calls, application, pod};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::Instant;

/// An error of the measurement itself.
type Failure = Box<dyn Error + Send + Sync>;

const AGENTS: [(&str, Agent); 2] = [("pilot-agent", Agent::Stock), ("app-health-agent", Agent::Mounted)];
/// How long a Pod stays idle before its memory is measured.
const IDLE: Duration = Duration::from_secs(10);
/// Pause between two looks at the memory of an agent that starts.
const PACE: Duration = Duration::from_millis(2);
/// How long the memory of an agent is watched after its Pod is ready.
const WATCHED: Duration = Duration::from_secs(5);
/// Time between two scrapes.
const SCRAPE: Duration = Duration::from_secs(15);
const MIB: f64 = (1 << 20) as f64;
const NOTES: &str = "\
Pods on one node, created by Istio's injector, with the same image, Envoy and istiod; the sidecar is a native one
memory: what the kernel charges to the container istio-proxy, without pages of files, minus the anonymous memory of Envoy:
  anonymous memory and files in memory volumes, after 10 s of idleness
peak: the highest anonymous memory of the agent while a Pod starts in a mesh with the given number of Services
start: from the first event of the Pod to its condition Ready, as a client of the API server sees them; kubelet asks for
  readiness once a second
CPU: of the agent alone, with 10 probes per 10 s and a scrape per 15 s; the Pods with either agent run at the same time
lost requests: of 20 per second from a Pod with either agent
without istiod: of 20 requests per second; kubelet restarts both containers, which no request survives";

/// Measures our agent in Pods of an Istio mesh
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// Pods of each agent for the time until readiness
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Services of the mesh for the peak
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    services: u32,
    /// Seconds in which CPU time is counted
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Seconds without istiod after a restart of the sidecars
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    without_istiod: u64,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let mesh = Mesh::start("bench-istio");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut quiet = QuietRounds::default();
    let mut rows = Vec::new();
    let starts = runtime.block_on(starts(&mesh, arguments.rounds, &mut quiet))?;
    rows.extend(compared("Pod created to Ready", starts, "ms", 0.8));
    let namespace = mesh.create_namespace("bench");
    let memory = both(|name, agent| idle_memory(&namespace, name, agent))?;
    rows.extend(compared("memory of one more Pod above Envoy's", memory, "MiB", 0.35));
    rows.extend(compared("CPU time of the agent in a minute", cpu(&mesh, arguments.seconds)?, "ms", 0.5));
    let _services = create_services(&mesh, arguments.services);
    let peaks = both(|name, agent| peak(&namespace, name, agent))?;
    rows.extend(compared(&format!("peak of the agent, {} Services", arguments.services), peaks, "MiB", 0.5));
    let memory = both(|name, agent| idle_memory(&namespace, name, agent))?;
    let what = format!("memory of one more Pod above Envoy's, {} Services", arguments.services);
    rows.extend(compared(&what, memory, "MiB", 0.35));
    rows.push(lost_requests(&mesh));
    rows.extend(without_istiod(&mesh, arguments.without_istiod));
    rows.extend(quiet.rows());
    let file = report::write(&workspace().join("target"), "istio", &rows)?;
    let table = report::table(&rows);
    writeln!(std::io::stdout(), "{table}\n\n{NOTES}\n{}\n{}", quiet.summary(), file.display())?;
    Ok(())
}

/// Measures Istio's agent and ours.
fn both(measure: impl Fn(&str, Agent) -> Result<f64, Failure>) -> Result<[f64; 2], Failure> {
    let [(theirs, stock), (ours, mounted)] = AGENTS;
    Ok([measure(theirs, stock)?, measure(ours, mounted)?])
}

/// Returns the figures of both, and their ratio.
fn compared(what: &str, values: [f64; 2], unit: &'static str, bar: f64) -> [Row; 3] {
    let [theirs, ours] = values;
    [
        Row::new(format!("{what}, pilot-agent"), theirs, unit),
        Row::new(format!("{what}, app-health-agent"), ours, unit),
        Row::new(format!("{what}, app-health-agent / pilot-agent"), ours / theirs, "ratio").at_most(bar),
    ]
}

/// Returns the medians of the times until readiness, in milliseconds.
async fn starts(mesh: &Mesh, rounds: u32, quiet: &mut QuietRounds) -> Result<[f64; 2], Failure> {
    let namespace = mesh.create_namespace("starts");
    let watch = namespace.watch();
    let mut times: [Vec<f64>; 2] = Default::default();
    let mut numbers = 0..;
    for _ in 0..rounds {
        for ((name, agent), times) in AGENTS.into_iter().zip(&mut times) {
            let time = quiet.once(async || {
                let name = format!("{name}-{}", numbers.next().unwrap_or_default());
                namespace.create(&idle_pod(&name, agent));
                namespace.wait_until(&watch, &name, "is ready", |pod| condition(pod, "Ready"));
                let events = watch.events_of(&name);
                let ready = events.iter().find(|event| condition(&event.pod, "Ready")).ok_or("no event")?;
                let time = ready.at.duration_since(events[0].at).as_secs_f64() * 1e3;
                delete(&namespace, &name);
                Ok::<f64, Failure>(time)
            });
            times.push(time.await?);
        }
    }
    Ok(times.map(|times| median(&times)))
}

/// A Pod whose application does nothing.
fn idle_pod(name: &str, agent: Agent) -> Value {
    let container = json!({"name": "app", "image": BUSYBOX, "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait"]});
    pod(name, agent, &[container])
}

fn delete(namespace: &Namespace<'_>, name: &str) {
    namespace.kubectl_ok(&["delete", "pod", name], "");
}

fn process_of(namespace: &Namespace<'_>, pod: &str, program: Program) -> Result<Process, Failure> {
    let found: Option<Pid> = sidecar::process(pod, &namespace.name, program);
    let found = found.ok_or_else(|| format!("no {program:?} of {pod}"))?;
    Ok(Process::new(found.as_raw().unsigned_abs()))
}

/// Returns what a Pod's sidecar is charged for besides Envoy, in MiB.
#[expect(clippy::cast_precision_loss, reason = "bytes of a container")]
fn idle_memory(namespace: &Namespace<'_>, name: &str, agent: Agent) -> Result<f64, Failure> {
    namespace.create(&idle_pod(name, agent));
    namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
    thread::sleep(IDLE);
    let envoy = process_of(namespace, name, Program::Envoy)?;
    let agent = sidecar::process(name, &namespace.name, Program::Agent).ok_or("no agent")?;
    let charged = Cgroup::of(agent.as_raw().unsigned_abs())?.charged()?;
    let bytes = (charged.anonymous + charged.shared) as f64 - envoy.anonymous() as f64;
    delete(namespace, name);
    Ok(bytes / MIB)
}

/// Returns the CPU time of both agents in a minute, in milliseconds.
fn cpu(mesh: &Mesh, seconds: u64) -> Result<[f64; 2], Failure> {
    let namespace = mesh.create_namespace("cpu");
    for (name, agent) in AGENTS {
        let probe = json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10});
        let mut containers = vec![application(&[])];
        containers[0]["readinessProbe"] = probe.clone();
        containers[0]["livenessProbe"] = probe.clone();
        containers.extend((1..5).map(|number| {
            json!({
                "name": format!("probed-{number}"), "image": BUSYBOX, "command": ["sleep", "86400"],
                "readinessProbe": probe, "livenessProbe": probe,
            })
        }));
        namespace.create(&pod(name, agent, &containers));
    }
    let mut running = Vec::new();
    for (name, _) in AGENTS {
        let pod = namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
        running.push((process_of(&namespace, name, Program::Agent)?, address(&pod, 15020)));
    }
    thread::sleep(IDLE);
    let before: Vec<Duration> = running.iter().map(|(process, _)| process.cpu()).collect();
    let begin = Instant::now();
    while begin.elapsed().as_secs() < seconds {
        for (_, address) in &running {
            let scraped = http_get(*address, "/stats/prometheus");
            if scraped.status != 200 {
                return Err(format!("a scrape got {}", scraped.status).into());
            }
        }
        thread::sleep(SCRAPE);
    }
    let minutes = begin.elapsed().as_secs_f64() / 60.0;
    let used: Vec<f64> = running
        .iter()
        .zip(before)
        .map(|((process, _), before)| (process.cpu() - before).as_secs_f64() * 1e3 / minutes)
        .collect();
    Ok([used[0], used[1]])
}

/// Returns the failed requests while a Deployment changes from Istio's agent to ours and back, from Pods with either.
#[expect(clippy::cast_precision_loss, reason = "requests of a minute")]
fn lost_requests(mesh: &Mesh) -> Row {
    let rollout = Rollout::start(mesh);
    let calls = [Agent::Mounted, Agent::Stock].map(|agent| rollout.change_to(agent));
    let failed: u64 = calls.iter().flatten().map(|calls| calls.failed).sum();
    Row::new("lost requests, rollout to app-health-agent and back", failed as f64, "requests").at_most(0.0)
}

/// Returns how long no request succeeded when the sidecars restarted while istiod was unavailable, in seconds.
fn without_istiod(mesh: &Mesh, seconds: u64) -> [Row; 2] {
    let scenario = Scenario::start(mesh, "");
    let [(.., stock), (.., ours)] = scenario.restart_without_istiod(seconds, || ());
    let row = |program: &str, calls: &Calls| {
        let what =
            format!("time without a success, istiod unavailable for {seconds} s and a restart, {program}");
        Row::new(what, calls.longest_gap, "s")
    };
    [row("pilot-agent", &stock), row("app-health-agent", &ours)]
}

fn create_services(mesh: &Mesh, count: u32) -> Namespace<'_> {
    let namespace = mesh.create_namespace("services");
    let mut list = String::new();
    for number in 0..count {
        let metadata = format!("{{name: service-{number}, namespace: {}}}", namespace.name);
        let spec = "{ports: [{name: http, port: 9080}]}";
        let _ = writeln!(list, "---\napiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {spec}");
    }
    mesh.node.cluster.kubectl_ok(&["create", "-f", "-"], &list);
    namespace
}

/// Returns the highest anonymous memory of the agent of a Pod that starts, in MiB.
#[expect(clippy::cast_precision_loss, reason = "bytes of a process")]
fn peak(namespace: &Namespace<'_>, name: &str, agent: Agent) -> Result<f64, Failure> {
    namespace.create(&idle_pod(name, agent));
    let mut process = None;
    namespace.node.until("the agent runs", || {
        process = sidecar::process(name, &namespace.name, Program::Agent);
        process.is_some()
    });
    let process = Process::new(process.ok_or("no agent")?.as_raw().unsigned_abs());
    let mut peak = 0;
    let mut ready: Option<Instant> = None;
    let mut looks = 0_u32;
    while ready.is_none_or(|ready| ready.elapsed() < WATCHED) {
        peak = peak.max(process.anonymous());
        looks += 1;
        if ready.is_none() && looks.is_multiple_of(100) && condition(&namespace.pod(name), "Ready") {
            ready = Some(Instant::now());
        }
        thread::sleep(PACE);
    }
    delete(namespace, name);
    Ok(peak as f64 / MIB)
}
