//! The demo: a small real application, the agent and Envoy, and a table of its probes.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use clap::Parser;
use futures_util::future::select_all;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};

pub mod application;
pub mod ports;
pub mod sidecar;
pub mod table;

use application::Application;
use sidecar::Sidecar;
use table::Row;

/// Between two rounds of probes: kubelet's shortest period.
const PERIOD: Duration = Duration::from_secs(1);

/// Shows an application behind Envoy, probed as kubelet does.
#[derive(Debug, Parser)]
#[command(name = "demo")]
pub struct Arguments {
    /// Probe once, print the table, end; fails if a verdict is wrong
    #[arg(long)]
    pub once: bool,
    /// The address of the pod: applications listen there, and probes go there
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub pod_ip: IpAddr,
    /// Probers of an application of your own, as in `ISTIO_KUBE_APP_PROBERS`
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = probers)]
    pub probers: Map<String, Value>,
}

fn probers(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text).map_err(|error| error.to_string())? {
        Value::Object(probers) => Ok(probers),
        _ => Err("must be an object: path to prober".into()),
    }
}

/// Runs the demo; whether every verdict was right. An interrupt ends it, and Envoy and agent with it.
///
/// # Errors
/// Says what is missing or in the way, and what to do.
pub async fn run(arguments: Arguments) -> Result<bool, String> {
    let once = arguments.once;
    unless_interrupted(show(arguments), once).await
}

/// What a demo shows, up to its end or an interrupt. Dropping it ends its children; what was not finished `once` has shown nothing.
pub(crate) async fn unless_interrupted(
    show: impl Future<Output = Result<bool, String>>,
    once: bool,
) -> Result<bool, String> {
    let mut signals = Vec::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        signals.push(signal(kind).map_err(|error| error.to_string())?);
    }
    let signalled = select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv())));
    tokio::select! {
        right = show => right,
        _ = signalled => Ok(!once),
    }
}

async fn show(arguments: Arguments) -> Result<bool, String> {
    ports::check(arguments.pod_ip)?;
    let application = Application::start(arguments.pod_ip).await;
    let mut probers = application.probers();
    probers.extend(arguments.probers);
    let mut rows: Vec<Row> = probers.keys().map(|path| Row::new(path, &probers[path])).collect();
    say("starting Envoy and the agent ...\n");
    let sidecar = Sidecar::start(arguments.pod_ip, &Value::Object(probers)).await?;
    let right = if arguments.once {
        table::probe(&mut rows, sidecar.listener, &application).await;
        say(&table::render(&rows));
        rows.iter().all(Row::is_right)
    } else {
        watch(&mut rows, &sidecar, &application).await;
        true
    };
    sidecar.stop().await;
    Ok(right)
}

/// Probes every second until `q`.
async fn watch(rows: &mut [Row], sidecar: &Sidecar, application: &Application) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut typing = true;
    let mut period = tokio::time::interval(PERIOD);
    loop {
        tokio::select! {
            _ = period.tick() => {
                table::probe(rows, sidecar.listener, application).await;
                let ready = sidecar.readiness().await;
                // Home, and clear: the table stays in its place.
                say(&format!("\x1b[H\x1b[2J{}{}", table::render(rows), application.help(&ready)));
            }
            line = lines.next_line(), if typing => match line.ok().flatten().as_deref().map(str::trim) {
                Some("q") => return,
                Some(name) => application.flip(name),
                None => typing = false,
            },
        }
    }
}

/// Writes to the terminal; one that is gone has nobody to tell.
pub fn say(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
