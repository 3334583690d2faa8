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

/// Time between two rounds of probes; the shortest `periodSeconds` of kubelet.
const PERIOD: Duration = Duration::from_secs(1);

/// Shows an application behind Envoy that is probed as kubelet does
#[derive(Debug, Parser)]
#[command(name = "demo")]
pub struct Arguments {
    /// Probe once, print the table and exit; fails if a verdict is wrong
    #[arg(long)]
    pub once: bool,
    /// Address of the Pod: applications listen there, and probes are sent there
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub pod_ip: IpAddr,
    /// Probers of your application, in the format of `ISTIO_KUBE_APP_PROBERS`
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = probers)]
    pub probers: Map<String, Value>,
}

fn probers(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text).map_err(|error| error.to_string())? {
        Value::Object(probers) => Ok(probers),
        _ => Err("must be a JSON object that maps paths to probers".into()),
    }
}

/// Runs the demo and returns whether every verdict was right. SIGINT ends it together with Envoy
/// and the agent.
///
/// # Errors
/// Names what is missing or in use, and what to do.
pub async fn run(arguments: Arguments) -> Result<bool, String> {
    let once = arguments.once;
    unless_interrupted(show(arguments), once).await
}

/// Runs a demo until it ends or is interrupted; dropping the future stops the child processes. With
/// `once`, an interrupt counts as a failure.
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

/// Probes every second until the user types `q`.
async fn watch(rows: &mut [Row], sidecar: &Sidecar, application: &Application) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut typing = true;
    let mut period = tokio::time::interval(PERIOD);
    loop {
        tokio::select! {
            _ = period.tick() => {
                table::probe(rows, sidecar.listener, application).await;
                let ready = sidecar.readiness().await;
                // Moves the cursor home and clears the screen, so that the table stays at the top.
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

/// Writes to the terminal; errors are ignored because a closed terminal cannot show them.
pub fn say(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
