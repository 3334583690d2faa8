//! Benchmarks of the injector: AdmissionReviews over TLS on one core at 200 per second, memory
//! under malformed requests, and a stream of 1000 Deployments. Prints a table and writes
//! `target/bench/injector.json`. A missed limit is reported but is not an error; a failed
//! measurement is.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]

#[path = "../webhook_support.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod webhook_support;

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webhook_support::Webhook;

/// Reviews per second; [`REVIEWS`] is the total number.
const RATE: u32 = 200;
const REVIEWS: u32 = 4000;
const DEPLOYMENTS: u32 = 1000;

struct Row {
    name: &'static str,
    value: f64,
    unit: &'static str,
    bar: Option<f64>,
}

impl Row {
    fn holds(&self) -> Option<bool> {
        self.bar.map(|bar| self.value <= bar)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = reviews()?;
    rows.extend(stream()?);
    for row in &rows {
        let bar = row.bar.map(|bar| format!("at most {bar}")).unwrap_or_default();
        let holds = row.holds().map(|holds| if holds { "met" } else { "EXCEEDED" }).unwrap_or_default();
        println!("{:36} {:>10.3} {:4} {bar:14} {holds}", row.name, row.value, row.unit);
    }
    let json: Vec<Value> = rows
        .iter()
        .map(|row| json!({"name": row.name, "value": row.value, "unit": row.unit, "bar": row.bar, "holds": row.holds()}))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("injector.json"), serde_json::to_string_pretty(&json)? + "\n")?;
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

fn reviews() -> Result<Vec<Row>, Box<dyn Error>> {
    let webhook = Webhook::start("bench", &[], &[]);
    let one_core = Command::new("taskset")
        .args(["-a", "-p", "-c", "0", &webhook.pid().to_string()])
        .stdout(Stdio::null())
        .status();
    if !one_core.is_ok_and(|status| status.success()) {
        println!("taskset not found: the webhook runs on all cores");
    }
    let mut review: Value = serde_json::from_str(&webhook_support::review("bench"))?;
    review["request"]["object"] = pod();
    let body = review.to_string();
    let mut call = webhook.call();
    for _ in 0..200 {
        call.post(&body)?;
    }
    let (idle, cpu) = (memory(webhook.pid())?, processor_time(webhook.pid())?);
    let mut times = Vec::new();
    let period = Duration::from_secs(1) / RATE;
    let started = Instant::now();
    for number in 0..REVIEWS {
        sleep((period * number).saturating_sub(started.elapsed()));
        let asked = Instant::now();
        let answer = call.post(&body)?;
        times.push(asked.elapsed().as_secs_f64() * 1e3);
        if answer.status != 200 {
            return Err(format!("{answer:?}").into());
        }
    }
    let cpu = (processor_time(webhook.pid())? - cpu) / f64::from(REVIEWS) * 1e6;
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() - 1) * part / 1000];
    let most = garbage(&webhook)?;
    let held: Vec<_> = (0..400).map(|_| webhook.call()).collect();
    let connections = memory(webhook.pid())?;
    drop(held);
    let asked = Instant::now();
    let after = webhook.call().post(&body)?;
    let next = asked.elapsed().as_secs_f64() * 1e3;
    if after.status != 200 {
        return Err(format!("{after:?}").into());
    }
    sleep(Duration::from_secs(1));
    let row = |name, value, unit, bar| Row { name, value, unit, bar };
    Ok(vec![
        row("injector_review_p50", at(500), "ms", None),
        row("injector_review_p99", at(990), "ms", Some(2.0)),
        row("injector_review_cpu", cpu, "us", None),
        row("injector_memory_idle", idle, "MiB", None),
        row("injector_memory_garbage_growth", most - idle, "MiB", Some(16.0)),
        row("injector_memory_400_connections", connections - idle, "MiB", None),
        row("injector_memory_after_growth", memory(webhook.pid())? - idle, "MiB", None),
        row("injector_review_after_garbage", next, "ms", Some(50.0)),
    ])
}

/// Sends invalid requests: bodies without an end, deeply nested ones, and long ones that are not an
/// AdmissionReview. Returns the highest resident memory that was measured, in MiB.
fn garbage(webhook: &Webhook) -> Result<f64, Box<dyn Error>> {
    let mut most: f64 = 0.0;
    let valid = format!("{{\"a\": [{}0]}}", "0,".repeat(4 << 19));
    for _ in 0..40 {
        let mut endless = webhook.call();
        endless.send(b"POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")?;
        let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "[".repeat(1 << 16));
        let mut sent = 0;
        while sent < 200 && endless.send(chunk.as_bytes()).is_ok() {
            sent += 1;
            if sent % 16 == 0 {
                most = most.max(memory(webhook.pid())?);
            }
        }
        for body in [valid.as_str(), &"[".repeat(1 << 20), "{}", "nonsense"] {
            // The server may close the connection before it has read everything.
            let _ = webhook.call().post(body);
            most = most.max(memory(webhook.pid())?);
        }
    }
    Ok(most)
}

fn memory(pid: u32) -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// Returns the CPU time of all threads in seconds; the kernel counts in hundredths of a second.
fn processor_time(pid: u32) -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().ok_or("no fields")?.split_whitespace().collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}

fn stream() -> Result<Vec<Row>, Box<dyn Error>> {
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
    let mut outputs = Vec::new();
    let mut best = f64::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        let mut child = Command::new(kit::agent::binary_of("app-health"))
            .arg("inject")
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
    Ok(vec![Row { name: "injector_thousand_deployments", value: best, unit: "s", bar: Some(1.0) }])
}
