//! The demo: a small application, the agent with its Envoy, and a table of what kubelet would see.

mod application;
mod child;
mod grpc_health;
mod http;
mod ports;
mod sidecar;
mod table;

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use futures_util::future::select_all;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};

use application::Application;
use ports::Ports;
use sidecar::Sidecar;
use table::Row;

/// Time between two rounds of probes; the shortest `periodSeconds` of kubelet.
const PERIOD: Duration = Duration::from_secs(1);

/// Show an application behind Envoy that is probed as kubelet does
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Arguments {
    /// Probe once, print the table and exit; fails if a verdict is wrong
    #[arg(long)]
    once: bool,
    /// Address of the Pod: applications listen there, and probes are sent there
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pod_ip: IpAddr,
    /// Probers of your application, in the format of `ISTIO_KUBE_APP_PROBERS`
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = probers)]
    probers: Map<String, Value>,
}

fn probers(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text).map_err(|error| error.to_string())? {
        Value::Object(probers) => Ok(probers),
        _ => Err("must be a JSON object that maps paths to probers".into()),
    }
}

// One thread: a child's parent-death signal is sent when the thread that started it exits.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    if let Some(failure) = child::launch() {
        say(&format!("demo: {failure}\n")).await;
        return ExitCode::FAILURE;
    }
    let arguments = Arguments::parse();
    let once = arguments.once;
    match unless_interrupted(show(arguments), once).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            say(&format!("demo: {reason}\n")).await;
            ExitCode::FAILURE
        }
    }
}

/// Runs the demo until it ends or is interrupted; dropping the future stops the agent. With `once`,
/// an interrupt counts as a failure.
async fn unless_interrupted(
    show: impl Future<Output = Result<bool, String>>,
    once: bool,
) -> Result<bool, String> {
    let mut signals = Vec::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        signals.push(signal(kind).map_err(|error| error.to_string())?);
    }
    let interrupted = select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv())));
    tokio::select! {
        result = show => result,
        _ = interrupted => Ok(!once),
    }
}

/// Returns whether every verdict was right.
async fn show(arguments: Arguments) -> Result<bool, String> {
    let ports = Ports::choose(arguments.pod_ip)?;
    for note in &ports.notes {
        say(&format!("demo: {note}\n")).await;
    }
    let application = Application::start(arguments.pod_ip, &ports).await?;
    let mut probers = application.probers();
    probers.extend(arguments.probers);
    let mut rows: Vec<Row> = probers.iter().map(|(path, prober)| Row::new(path, prober)).collect();
    say("starting the agent and Envoy ...\n").await;
    let sidecar = Sidecar::start(arguments.pod_ip, &ports, &Value::Object(probers)).await?;
    let all_right = if arguments.once {
        table::probe(&mut rows, sidecar.probe_address, &application).await;
        say(&table::render(&rows)).await;
        rows.iter().all(Row::is_right)
    } else {
        watch(&mut rows, &sidecar, &application).await;
        true
    };
    sidecar.stop().await;
    Ok(all_right)
}

/// Probes every second until the user enters `q`.
async fn watch(rows: &mut [Row], sidecar: &Sidecar, application: &Application) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut stdin_open = true;
    let mut period = tokio::time::interval(PERIOD);
    loop {
        tokio::select! {
            _ = period.tick() => {
                table::probe(rows, sidecar.probe_address, application).await;
                let help = application.help(&sidecar.readiness().await, sidecar);
                // The escape sequence moves the cursor home and clears the screen.
                say(&format!("\x1b[H\x1b[2J{}{help}", table::render(rows))).await;
            }
            line = lines.next_line(), if stdin_open => match line.ok().flatten().as_deref().map(str::trim) {
                Some("q") => return,
                Some(name) => application.flip(name),
                None => stdin_open = false,
            },
        }
    }
}

/// Writes to standard output and ignores a closed terminal.
async fn say(text: &str) {
    let mut stdout = tokio::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).await;
    let _ = stdout.flush().await;
}
