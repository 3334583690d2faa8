//! The commands `bootstrap`, which writes the bootstrap and the filter, and `run`, which starts the
//! agent's tasks and stops them.

mod prepare;

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::address::{Endpoint, HttpUrl};
use crate::awaited_pids::AwaitedPids;
use crate::config::{BootstrapConfig, EnvoyConfigSource, RunConfig, SidecarConfig};
use crate::envoy::supervisor::{self, Parts};
use crate::exit::{self, Failure};
use crate::http_server::{self, Bound, Limits, Server};
use crate::local::{self, LocalServer};
use crate::log::LogLevelHandle;
use crate::metrics::Metrics;
use crate::metrics::scrape::Scraper;
use crate::readiness::poller::{self, Observer, Questions};
use crate::readiness::server::{LIVE_PATH, READY_PATH, ReadinessServer};
use crate::readiness::{Observation, Policy};
use crate::signals::Signals;
use crate::{health, log, machine, output, report, runtime};
use prepare::Prepared;

/// Capacity of the channel to the supervisor.
const ORDERS: usize = 8;

/// Creates the state directory and writes the filter into it where the bootstrap refers to them,
/// then writes the bootstrap to stdout or to its file.
pub fn bootstrap(config: BootstrapConfig) -> Result<(), Failure> {
    let BootstrapConfig { sidecar, output } = config;
    for warning in &sidecar.warnings {
        exit::stderr_line(warning);
    }
    prepare::write_filter(&sidecar)?;
    let SidecarConfig { bootstrap, .. } = sidecar;
    let text = bootstrap.render();
    match output {
        Some(file) => output::write(&file, text.as_bytes())
            .map_err(|error| Failure::CannotWrite(format!("--output = {}: {error}", file.display()))),
        None => output::write_stdout(text.as_bytes())
            .map_err(|error| Failure::CannotWrite(format!("stdout: {error}"))),
    }
}

/// Starts Envoy unless it is external, monitors it, serves ports 15021 and 15004, and exits when
/// Envoy does.
pub fn run(mut config: RunConfig) -> Result<(), Failure> {
    // The handlers come first, because a process with id 1 ignores signals without a handler.
    let runtime = runtime::new()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new().map_err(|error| Failure::Machine(format!("signals: {error}")))?
    };
    let log = log::init(config.log_level, config.log_format);
    for warning in &config.warnings {
        warn!("{warning}");
    }
    let version = async {
        tokio::select! {
            version = prepare::query_version(&mut config) => version.map(|()| true),
            () = signals.end(|| ()) => Ok(false),
        }
    };
    if !runtime.block_on(version)? {
        info!("agent terminated before Envoy was started");
        return Ok(());
    }
    say(&config);
    // The ports are bound before anything is written or started, so that no request is refused from
    // now on.
    let ready = http_server::bind(config.ready_address).map_err(|error| {
        taken(
            config.ready_address,
            &error,
            "it serves GET /healthz/ready; set --ready-address to another one",
        )
    })?;
    let local = prepare::bind_local(&config)?;
    let prepared = prepare::files(&config)?;
    // After a panic Envoy is stopped in order while `serve` unwinds, and the exit code is distinct.
    let served = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(serve(config, prepared, (ready, local), signals, log))
    }));
    // A hanging name lookup must not delay the exit.
    runtime.shutdown_background();
    served.unwrap_or_else(|_| Err(broken_part("supervisor", None)))
}

fn taken(address: SocketAddr, error: &std::io::Error, hint: &str) -> Failure {
    Failure::Machine(format!("port {} ({address}): {error}; {hint}", address.port()))
}

/// Logs the validated configuration once, without header values.
fn say(config: &RunConfig) {
    let envoy = match &config.envoy {
        None => "external".to_owned(),
        Some(envoy) => match &envoy.files {
            EnvoyConfigSource::Rendered(_) => envoy.binary.display().to_string(),
            EnvoyConfigSource::Merged(file, _) | EnvoyConfigSource::Given(file) => {
                format!("{} with {}", envoy.binary.display(), file.display())
            }
        },
    };
    info!(
        envoy,
        ready_address = %config.ready_address,
        local_address = %config.local_address,
        admin = %config.admin,
        data_path = config.data_path.as_ref().map_or("off", |url| url.authority.as_str()),
        dynamic = ?config.dynamic,
        drain = ?config.drain,
        metrics = ?config.metrics,
        "configuration loaded"
    );
}

async fn serve(
    config: RunConfig,
    prepared: Prepared,
    (ready, local): (Bound, Bound),
    signals: Signals,
    log: LogLevelHandle,
) -> Result<(), Failure> {
    let system = |error: std::io::Error| Failure::Machine(format!("cannot start: {error}"));
    let policy = Policy {
        dynamic: config.dynamic,
        data_path: config.data_path.is_some(),
        child: config.envoy.is_some(),
        drain_keeps_ready: config.drain.keeps_ready,
    };
    let metrics = Arc::new(Metrics::new());
    for key in &config.metrics.rejected {
        metrics.rejected(key);
    }
    let observer = Arc::new(Observer::new(policy, metrics.clone()));
    let admin = HttpUrl {
        endpoint: Endpoint::from(&config.admin),
        authority: "localhost".to_owned(),
        path: String::new(),
    };
    let questions = Questions {
        admin: admin.clone(),
        admin_timeout: config.admin_timeout,
        data_path: config.data_path,
        child: policy.child,
    };
    let awaited_pids = AwaitedPids::default();
    // The probe may come from the file or from a discovery server.
    let is_probing = config.health.group.is_some() || config.discovery.is_some();
    let (health, mut probing) = is_probing
        .then(|| health::start(config.health, observer.clone(), awaited_pids.clone(), metrics.clone()))
        .unzip();
    let reports = config.discovery.zip(health.clone());
    let reports = reports
        .map(|(discovery, health)| report::start(discovery, health, observer.clone(), metrics.clone()))
        .transpose()?;
    let (stream, mut reporting) = reports.unzip();
    let (order, orders) = mpsc::channel(ORDERS);
    let (closing, limits) = (CancellationToken::new(), Limits::new(machine::descriptor_limit()));
    let named = |name, paths| Server { name, paths, limits, metrics: metrics.clone() };

    let server = ReadinessServer::new(observer.clone(), config.live);
    let listener = ready.listen().map_err(system)?;
    let answers = move |call| server.clone().answer(call);
    let name = named("ready", &[READY_PATH, LIVE_PATH]);
    let mut readiness = tokio::spawn(http_server::serve(listener, name, closing.clone(), answers));
    let server = LocalServer {
        observer: observer.clone(),
        orders: order,
        bootstrap: prepared.shown,
        admin: admin.clone(),
        scraper: Scraper::new(metrics.clone(), config.metrics, admin.clone()),
        log,
        health,
        stream,
    };
    let listener = local.listen().map_err(system)?;
    let answers = move |call| server.clone().answer(call);
    let name = named("local", &local::PATHS);
    let mut local = tokio::spawn(http_server::serve(listener, name, closing.clone(), answers));
    let polled = observer.clone();
    let mut polling = tokio::spawn(async move { poller::run(&polled, questions).await });

    let broken = async {
        tokio::select! {
            failure = unasked("poller", &mut polling) => failure,
            failure = unasked("readiness server", &mut readiness) => failure,
            failure = unasked("local server", &mut local) => failure,
            failure = unasked_if_any("health", &mut probing) => failure,
            failure = unasked_if_any("reporter", &mut reporting) => failure,
        }
    };
    let parts = Parts {
        observer: observer.clone(),
        admin,
        drain: config.drain,
        envoy: prepared.envoy,
        orders,
        signals,
        awaited_pids,
    };
    let ended = supervisor::run(parts, broken).await;
    observer.tell(Observation::Terminating);
    if let Some(reporting) = reporting.filter(|reporting| !reporting.is_finished()) {
        // The reporter's limit is --goodbye-timeout, which includes the time that Envoy took to
        // exit.
        reporting.await.map_err(|error| broken_part("reporter", Some(error)))?;
    }
    closing.cancel();
    if ended.is_ok() {
        let (readiness, local) = tokio::join!(readiness, local);
        readiness.map_err(|error| broken_part("readiness server", Some(error)))?;
        local.map_err(|error| broken_part("local server", Some(error)))?;
    }
    ended
}

/// Waits for a task that must run as long as the agent. When it ends, the agent exits too, because
/// nothing else would detect it.
async fn unasked(part: &str, task: &mut JoinHandle<()>) -> Failure {
    broken_part(part, task.await.err())
}

/// Like [`unasked`], for a task that may be absent.
async fn unasked_if_any(part: &str, task: &mut Option<JoinHandle<()>>) -> Failure {
    match task {
        Some(task) => unasked(part, task).await,
        None => std::future::pending().await,
    }
}

fn broken_part(part: &str, error: Option<JoinError>) -> Failure {
    let how = error.map_or_else(|| "the task returned".to_owned(), |error| error.to_string());
    Failure::Broken(format!(
        "{part}: {how}; this is a bug in app-health-agent, which now exits to be restarted"
    ))
}

#[cfg(test)]
mod tests;
