//! Benchmarks of the injector: AdmissionReviews over TLS on one core at 200 per second, in turn with
//! an HTTPS echo server, memory under malformed requests, and a stream of 1000 Deployments through
//! `inject` and `lint`. Prints a table and writes `target/bench/injector.json`. A missed limit is
//! reported but is not an error; a failed measurement is.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]

#[path = "injector/echo_server.rs"]
mod echo_server;
#[path = "../webhook_support.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod webhook_support;

use std::error::Error;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kit::envoy::workspace;
use kit::process::Process;
use kit::quiet_rounds::QuietRounds;
use kit::report::{self, Row, median, median_ratio, quantile};
use serde_json::{Value, json};
use webhook_support::{Call, Webhook};

use crate::echo_server::EchoServer;

/// Reviews per second.
const RATE: u32 = 200;
const ROUNDS: u32 = 10;
/// Reviews in a round.
const REVIEWS: u32 = 400;
const DEPLOYMENTS: u32 = 1000;
/// The length of a large stream, in bytes.
const LARGE: usize = 50 << 20;
const MIB: f64 = 1_048_576.0;
/// How many times as long as the echo server a review may take. The ratio of p50 was 10.2 to 10.3 in
/// runs in which its absolute value varied by a fifth.
const P50_BAR: f64 = 12.0;
const P99_BAR: f64 = 10.0;

const NOTES: &str = "\
review: of a Pod with five containers, on a connection that stays open, with webhook and echo server on the first core
echo: the same bytes sent back by a thread that parses nothing but the length of the body
p50, p99: the medians of those of each round; ratio: the median of the ratios of all rounds";

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut quiet = QuietRounds::default();
    let mut rows = runtime.block_on(reviews(&mut quiet))?;
    rows.push(runtime.block_on(quiet.round(async || stream()))?);
    rows.push(runtime.block_on(quiet.round(async || linted()))?);
    rows.extend(large_streams()?);
    rows.extend(quiet.rows());
    let file = report::write(&workspace().join("target"), "injector", &rows)?;
    println!("{}\n\n{NOTES}\n{}\n{}", report::table(&rows), quiet.summary(), file.display());
    Ok(())
}

/// Returns a Pod with five containers, each with two probes.
fn pod() -> Value {
    let container = |index: u32| {
        json!({
            "name": format!("app{index}"), "image": "shop:1", "ports": [{"name": "http", "containerPort": 8080 + index}],
            "env": (0..10).map(|env| json!({"name": format!("VARIABLE_{env}"), "value": "x".repeat(40)})).collect::<Vec<_>>(),
            "livenessProbe": {"httpGet": {"path": "/live", "port": "http", "httpHeaders": [{"name": "X-A", "value": "b"}]}},
            "readinessProbe": {"grpc": {"port": 9000, "service": "shop.Cart"}, "timeoutSeconds": 3},
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "shop-", "labels": {"app": "shop"}},
        "spec": {"containers": (0..5).map(container).collect::<Vec<_>>()},
    })
}

async fn reviews(quiet: &mut QuietRounds) -> Result<Vec<Row>, Box<dyn Error>> {
    let webhook = Webhook::start("bench", &[], &[]);
    let process = Process::new(webhook.pid());
    pin("-a", &webhook.pid().to_string());
    let echo = EchoServer::start(&webhook.ca);
    pin("-p", &echo.thread_id);
    let mut review: Value = serde_json::from_str(&webhook_support::review("bench"))?;
    review["request"]["object"] = pod();
    let body = review.to_string();
    let mut calls = [webhook.call(), Call::new(echo.address, &webhook.client(None))?];
    for _ in 0..200 {
        for call in &mut calls {
            call.post(&body)?;
        }
    }
    let idle = process.rss();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(quiet.round(async || round(&mut calls, &body, process)).await?);
    }
    let mut rows = latency(&rounds);

    let most = garbage(&webhook, process)?;
    let held: Vec<_> = (0..400).map(|_| webhook.call()).collect();
    let connections = process.rss();
    drop(held);
    let next = post(&mut webhook.call(), &body)?;
    sleep(Duration::from_secs(1));
    let above_idle = |bytes: u64| mib(bytes) - mib(idle);
    rows.extend([
        Row::new("memory, idle", mib(idle), "MiB"),
        Row::new("memory above idle during malformed requests", above_idle(most), "MiB").at_most(16.0),
        Row::new("memory above idle with 400 connections", above_idle(connections), "MiB"),
        Row::new("memory above idle afterwards", above_idle(process.rss()), "MiB"),
        Row::new("first review after malformed requests", next, "ms").at_most(50.0),
    ]);
    Ok(rows)
}

/// Restricts a process, or a thread, to the first core.
fn pin(kind: &str, id: &str) {
    let status = Command::new("taskset").args([kind, "-p", "-c", "0", id]).stdout(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("taskset not found: the servers run on all cores");
    }
}

/// The figures of one round: latencies in milliseconds, of the webhook and of the echo server.
struct Round {
    p50: [f64; 2],
    p99: [f64; 2],
    /// CPU time of the webhook for a review, in milliseconds.
    cpu: f64,
}

/// Sends a review in each period, and the same to the echo server half a period later.
fn round(calls: &mut [Call; 2], body: &str, webhook: Process) -> Result<Round, Box<dyn Error>> {
    let cpu = webhook.cpu();
    let mut times = [Vec::new(), Vec::new()];
    let half = Duration::from_secs(1) / RATE / 2;
    let started = Instant::now();
    for number in 0..REVIEWS {
        for (place, (call, times)) in (0..).zip(calls.iter_mut().zip(&mut times)) {
            sleep((half * (number * 2 + place)).saturating_sub(started.elapsed()));
            times.push(post(call, body)?);
        }
    }
    let cpu = millis(webhook.cpu() - cpu) / f64::from(REVIEWS);
    let at = |place| times.each_ref().map(|times| quantile(times, place));
    Ok(Round { p50: at(0.5), p99: at(0.99), cpu })
}

/// Returns the duration of a request in milliseconds.
fn post(call: &mut Call, body: &str) -> Result<f64, Box<dyn Error>> {
    let asked = Instant::now();
    let answer = call.post(body)?;
    let took = millis(asked.elapsed());
    if answer.status == 200 { Ok(took) } else { Err(format!("{answer:?}").into()) }
}

fn latency(rounds: &[Round]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, pick, bar) in
        [("p50", (|round| round.p50) as fn(&Round) -> [f64; 2], P50_BAR), ("p99", |round| round.p99, P99_BAR)]
    {
        let [review, echo] =
            [0, 1].map(|server| rounds.iter().map(|round| pick(round)[server]).collect::<Vec<f64>>());
        let ratio = Row::new(format!("review / echo, {name}"), median_ratio(&review, &echo), "ratio");
        rows.extend([
            Row::new(format!("review, {name}"), median(&review), "ms"),
            Row::new(format!("echo, {name}"), median(&echo), "ms"),
            ratio.at_most(bar),
        ]);
    }
    let cpu: Vec<f64> = rounds.iter().map(|round| round.cpu).collect();
    rows.push(Row::new("CPU time per review", median(&cpu), "ms"));
    rows
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn mib(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes).expect("less than 4 GiB")) / MIB
}

/// Sends invalid requests: bodies without an end, deeply nested ones, and long ones that are not an
/// AdmissionReview. Returns the highest resident memory that was measured, in bytes.
fn garbage(webhook: &Webhook, process: Process) -> Result<u64, Box<dyn Error>> {
    let mut most = 0;
    let valid = format!("{{\"a\": [{}0]}}", "0,".repeat(4 << 19));
    for _ in 0..40 {
        let mut endless = webhook.call();
        endless.send(b"POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")?;
        let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "[".repeat(1 << 16));
        let mut sent = 0;
        while sent < 200 && endless.send(chunk.as_bytes()).is_ok() {
            sent += 1;
            if sent % 16 == 0 {
                most = most.max(process.rss());
            }
        }
        for body in [valid.as_str(), &"[".repeat(1 << 20), "{}", "nonsense"] {
            // The server may close the connection before it has read everything.
            let _ = webhook.call().post(body);
            most = most.max(process.rss());
        }
    }
    Ok(most)
}

/// Returns a stream of Deployments, each with one container.
fn deployments() -> String {
    let mut input = String::new();
    for index in 0..DEPLOYMENTS {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("shop{index}")},
            "spec": {"selector": {"matchLabels": {"app": "shop"}}, "template": {"metadata": {"labels": {"app": "shop"}}, "spec": {
                "containers": [pod()["spec"]["containers"][0]],
            }}},
        });
        input.push_str("---\n");
        input.push_str(&injector::yaml::text(&deployment));
    }
    input
}

fn stream() -> Result<Row, Box<dyn Error>> {
    let best = run("inject")?;
    Ok(Row::new("1,000 Deployments through `app-health inject`", best, "s").at_most(1.0))
}

/// Every Deployment has findings: no other container declares the port of its readinessProbe.
fn linted() -> Result<Row, Box<dyn Error>> {
    let best = run("lint")?;
    Ok(Row::new("1,000 Deployments with findings through `app-health lint`", best, "s").at_most(1.0))
}

/// Returns how much longer a command needs for ten times as many documents of each kind.
fn large_streams() -> Result<Vec<Row>, Box<dyn Error>> {
    let deployments = deployments();
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"},
        "data": {"text": "line of text\n".repeat(20_000)},
    });
    let config_map = format!("---\n{}", injector::yaml::text(&config_map));
    let mut rows = Vec::new();
    for (kind, documents) in [
        ("Deployments", deployments.as_str()),
        ("ConfigMaps", &config_map),
        ("empty documents", "--- {}\n"),
        ("JSON documents", "{\"kind\": \"Other\"}\n"),
    ] {
        for command in ["inject", "lint"] {
            let [small, large] = [LARGE / 10, LARGE].map(|bytes| time_of(command, documents, bytes));
            let name = format!("50 MiB of {kind} / 5 MiB, `app-health {command}`");
            rows.push(Row::new(name, large? / small?, "ratio").at_most(15.0));
        }
    }
    Ok(rows)
}

/// Runs a command with these documents, repeated up to this many bytes. Returns its duration in seconds.
fn time_of(command: &str, documents: &str, bytes: usize) -> Result<f64, Box<dyn Error>> {
    let file = kit::envoy::folder("bench-streams").join("stream.yaml");
    std::fs::write(&file, documents.repeat(bytes / documents.len()))?;
    let started = Instant::now();
    let mut process = Command::new(kit::agent::binary_of("app-health"));
    process.arg(command).stdin(std::fs::File::open(&file)?).stdout(Stdio::null()).stderr(Stdio::null());
    let status = process.status()?;
    // `lint` exits with 1 if it has findings.
    if status.code().is_none_or(|code| code > 1) {
        return Err(format!("{command} of {bytes} bytes: {status}").into());
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Runs a command three times with all Deployments as its input. Returns the shortest duration in
/// seconds.
fn run(command: &str) -> Result<f64, Box<dyn Error>> {
    let input = deployments();
    let mut outputs = Vec::new();
    let mut best = f64::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        let mut child = Command::new(kit::agent::binary_of("app-health"))
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        child.stdin.take().ok_or("no stdin")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        best = best.min(started.elapsed().as_secs_f64());
        outputs.push(output.stdout);
    }
    if outputs.iter().any(|output| *output != outputs[0] || output.is_empty()) {
        return Err("the same input produced different output".into());
    }
    Ok(best)
}
