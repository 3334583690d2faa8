//! The commands `bootstrap`, which writes the bootstrap and the filter, and `run`, which starts the
//! agent's tasks and stops them.

mod configuration;
mod prepare;

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serving::http_server::{self, Limits, Listener, Plaintext, Server, Stages};
use serving::runtime;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use crate::config::{BootstrapConfig, ProbesConfig, RunConfig};
#[cfg(feature = "vm")]
use crate::vm;
use crate::{machine, tasks};
use address::{Endpoint, HttpUrl};
use agent_output::exit::{self, Failure};
use agent_output::log::LogLevelHandle;
use agent_output::{log, output};
use agent_server::local_peer::LocalPeers;
use agent_server::local_server::{self, LocalServer};
#[cfg(feature = "vm")]
use agent_server::machine_view::MachineView;
use agent_server::page::StatusPage;
use agent_server::readiness_server::{LIVE_PATH, READY_PATH, ReadinessServer};
use agent_server::stats_server;
use agent_server::status_server::{self, IstioPaths, StatusServer};
use agent_state::awaited_pids::AwaitedPids;
use agent_state::metrics::Metrics;
use agent_state::state::AgentState;
use envoy_bootstrap::filter_choice::FilterChoice;
use envoy_process::config_source::{EnvoyConfigSource, SidecarConfig};
use envoy_process::envoy_files::{self, DebugInfo};
use envoy_process::poller::{self, PollTargets};
use envoy_process::signals::Signals;
use envoy_process::supervisor::{self, Ended, EnvoyStart, Inputs};
use probe_server::ProbeServer;
use prometheus_client::registry::Registry;
use readiness::{Observation, Policy};
use scrape::Scraper;

const COMMANDS: usize = 8;

/// Creates the state directory and writes the filter into it where the bootstrap refers to them,
/// then writes the bootstrap to stdout or to its file.
pub fn bootstrap(config: BootstrapConfig) -> Result<(), Failure> {
    let BootstrapConfig { sidecar, output } = config;
    for warning in &sidecar.warnings {
        exit::stderr_line(warning);
    }
    envoy_files::write_filter(&sidecar).map_err(|error| match error {
        Failure::CannotWrite(text) => Failure::CannotWrite(format!(
            "{text}; or use --inline-filter with an --admin address outside of the directory to need none"
        )),
        other => other,
    })?;
    let SidecarConfig { bootstrap, .. } = sidecar;
    let text = bootstrap.render();
    match output {
        Some(file) => output::write(&file, text.as_bytes())
            .map_err(|error| Failure::CannotWrite(format!("--output = {}: {error}", file.display()))),
        None => output::write_stdout(text.as_bytes())
            .map_err(|error| Failure::CannotWrite(format!("stdout: {error}"))),
    }
}

/// Starts Envoy unless it is external, monitors it, serves ports 15021, 15090 and 15004, and exits when
/// Envoy does.
pub fn run(mut config: RunConfig) -> Result<(), Failure> {
    // The handlers come first, because a process with id 1 ignores signals without a handler.
    let runtime = runtime::build(&mut Builder::new_current_thread())?;
    let inside = runtime.enter();
    let mut signals = Signals::new().map_err(|error| Failure::Os(format!("signals: {error}")))?;
    let log = log::init(config.log_level, config.log_format);
    for warning in &config.warnings {
        warn!("{warning}");
    }
    let version = async {
        tokio::select! {
            version = prepare::query_version(&mut config) => version,
            signal = signals.wait_for_termination(|| ()) => {
                info!("agent terminated before Envoy was started");
                Err(supervisor::never_ready(signal, "the version of Envoy was queried"))
            }
        }
    };
    runtime.block_on(version)?;
    log_configuration(&config);
    if let Some(FilterChoice { form, reason }) = config.filter_choice() {
        info!(form = form.word(), reason = %reason.text(), "filter chosen");
    }
    // The ports are bound before anything is written or started, so that no request is refused from
    // now on.
    let ready = config.has_ready_listener.then(|| {
        let (address, hint) =
            (config.ready_address, "it serves GET /healthz/ready; set --ready-address to another one");
        http_server::bind(address).map_err(|error| bind_error(address, &error, hint))
    });
    let ready = ready.transpose()?;
    let stats = config.stats_address.map(|address| {
        http_server::bind(address).map_err(|error| {
            let hint = "it serves Envoy's metrics; set --stats-address to another one, or to off";
            bind_error(address, &error, hint)
        })
    });
    let stats = stats.transpose()?;
    let probes = config.probes.as_ref().map(|probes| {
        let hint = "it serves kubelet's probes; set --probe-address to another one";
        http_server::bind(probes.address).map_err(|error| bind_error(probes.address, &error, hint))
    });
    let probes = probes.transpose()?;
    let local = prepare::bind_local(&config)?;
    let leftover = async {
        tokio::select! {
            record = prepare::end_leftover(&config) => record,
            signal = signals.wait_for_termination(|| ()) => {
                Err(supervisor::never_ready(signal, "the envoy of an earlier agent has not ended yet"))
            }
        }
    };
    let record = runtime.block_on(leftover)?;
    let prepared = prepare::files(&config, record)?;
    drop(inside);
    // After a panic Envoy is stopped in order while `serve` unwinds, and the exit code is distinct.
    let served = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(serve(config, prepared, Listeners { ready, stats, probes, local }, signals, log))
    }));
    // A hanging name lookup must not delay the exit.
    runtime.shutdown_background();
    served.unwrap_or_else(|_| Err(tasks::error("supervisor", None)))
}

fn bind_error(address: SocketAddr, error: &std::io::Error, hint: &str) -> Failure {
    Failure::Os(format!("port {} ({address}): {error}; {hint}", address.port()))
}

/// Logs the validated configuration once, without header values.
fn log_configuration(config: &RunConfig) {
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

/// The ports of the agent.
struct Listeners {
    ready: Option<TcpListener>,
    stats: Option<TcpListener>,
    /// `None` if Envoy answers probes.
    probes: Option<TcpListener>,
    local: Listener,
}

async fn serve(
    config: RunConfig,
    (envoy, debug_info): (Option<EnvoyStart>, DebugInfo),
    Listeners { ready, stats, probes, local }: Listeners,
    signals: Signals,
    log: LogLevelHandle,
) -> Result<(), Failure> {
    let configuration = configuration::rows(&config);
    let policy = Policy {
        dynamic: config.dynamic,
        data_path: config.data_path.is_some() && config.requires_data_path,
        child: config.envoy.is_some(),
        drain_keeps_ready: config.drain.keeps_ready,
    };
    let metrics = Arc::new(Metrics::new());
    for key in &config.metrics.rejected {
        metrics.config_rejected(key);
    }
    if let Some(choice) = debug_info.filter {
        metrics.filter_chosen(choice);
    }
    let (debug_info_sender, debug_info) = watch::channel(debug_info);
    let state = Arc::new(AgentState::new(policy, metrics.clone()));
    let admin = HttpUrl {
        endpoint: Endpoint::from(&config.admin),
        authority: "localhost".to_owned(),
        path: String::new(),
    };
    let targets = PollTargets {
        admin: admin.clone(),
        admin_timeout: config.admin_timeout,
        data_path: config.data_path,
        child: policy.child,
    };
    #[cfg(not(feature = "vm"))]
    let must_become_ready = true;
    #[cfg(feature = "vm")]
    let must_become_ready = config.envoy.is_some() || config.vm.requires_envoy();
    let awaited_pids = AwaitedPids::default();
    #[cfg(not(feature = "vm"))]
    let (view, vm_failure) = (None, std::future::pending());
    #[cfg(feature = "vm")]
    let (view, mut vm) = vm::start(config.vm, &state, &awaited_pids, &metrics)?;
    #[cfg(feature = "vm")]
    let (view, vm_failure) = (Some(Arc::new(view) as Arc<dyn MachineView>), vm.failure());
    let (command, commands) = mpsc::channel(COMMANDS);
    let (stages, connections) = (Stages::default(), connections(machine::descriptor_limit()));
    let limits = Limits { connections, ..Limits::ONE_REQUEST };
    let named = |name, paths| Server { name, paths, limits, metrics: metrics.servers.clone() };

    let ready_server = ReadinessServer::new(state.clone(), config.live);
    let answers = {
        let server = ready_server.clone();
        move |request| server.clone().answer(request)
    };
    let mut readiness = tokio::spawn({
        let (name, stages) = (named("ready", &[READY_PATH, LIVE_PATH]), stages.clone());
        async move {
            match ready {
                Some(listener) => http_server::serve(listener, Plaintext, name, stages, answers).await,
                None => stages.closing.cancelled().await,
            }
        }
    });
    let scraper = Scraper::new(metrics.clone(), config.metrics, admin.clone());
    let answers = {
        let scraper = scraper.clone();
        move |request| stats_server::answer(scraper.clone(), request)
    };
    let mut stats_server = tokio::spawn({
        let (name, stages) = (named("stats", &[stats_server::PATH]), stages.clone());
        async move {
            match stats {
                Some(listener) => http_server::serve(listener, Plaintext, name, stages, answers).await,
                None => stages.closing.cancelled().await,
            }
        }
    });
    let page = StatusPage::new(
        state.clone(),
        debug_info.clone(),
        admin.clone(),
        configuration,
        view.clone(),
        stages.closing.clone(),
    );
    let server = LocalServer {
        state: state.clone(),
        commands: command,
        debug_info,
        admin: admin.clone(),
        scraper,
        log,
        vm: view,
        page,
    };
    let mut probe_server = tokio::spawn({
        let (limits, stages) = (status_server::limits(machine::descriptor_limit()), stages.clone());
        let name = Server { limits, ..named("probes", &status_server::PATHS) };
        let status = probes.zip(config.probes).map(|(listener, config)| {
            let ProbesConfig { declared, clients, istio_metrics, .. } = config;
            let mut registry = Registry::default();
            let probes = ProbeServer::new(declared, &mut registry);
            metrics.add(registry);
            let local = server.clone();
            let scraper = local.scraper.clone();
            let istio = istio_metrics.map(|has_local_metrics| IstioPaths { local, has_local_metrics });
            (listener, clients, StatusServer { probes, readiness: ready_server, scraper, istio })
        });
        async move {
            match status {
                Some((listener, clients, server)) => {
                    let answers = move |request| server.clone().answer(request);
                    http_server::serve(listener, clients, name, stages, answers).await;
                }
                None => stages.closing.cancelled().await,
            }
        }
    });
    let answers = move |request| server.clone().answer(request);
    let name = named("local", &local_server::PATHS);
    let peers = LocalPeers::new(config.local_group);
    let mut local = tokio::spawn(http_server::serve(local, peers, name, stages.clone(), answers));
    let polled = state.clone();
    let mut polling = tokio::spawn(async move { poller::run(&polled, targets).await });

    let broken = async {
        tokio::select! {
            failure = tasks::failure("poller", &mut polling) => failure,
            failure = tasks::failure("readiness server", &mut readiness) => failure,
            failure = tasks::failure("stats server", &mut stats_server) => failure,
            failure = tasks::failure("probe server", &mut probe_server) => failure,
            failure = tasks::failure("local server", &mut local) => failure,
            failure = vm_failure => failure,
        }
    };
    let parts = Inputs {
        state: state.clone(),
        admin,
        drain: config.drain,
        envoy,
        must_become_ready,
        debug_info: debug_info_sender,
        commands,
        signals,
        awaited_pids,
    };
    let ended = supervisor::run(parts, broken).await;
    if matches!(ended, Ok(Ended::Restarted)) {
        // Without a final report, discovery keeps the endpoint until its --disconnect-grace ends.
        return Ok(());
    }
    state.apply(Observation::Terminating);
    #[cfg(feature = "vm")]
    vm.finish().await?;
    stages.closing.cancel();
    if ended.is_ok() {
        let (readiness, stats, probes, local) = tokio::join!(readiness, stats_server, probe_server, local);
        readiness.map_err(|error| tasks::error("readiness server", Some(error)))?;
        stats.map_err(|error| tasks::error("stats server", Some(error)))?;
        probes.map_err(|error| tasks::error("probe server", Some(error)))?;
        local.map_err(|error| tasks::error("local server", Some(error)))?;
    }
    ended.map(|_| ())
}

/// Maximum number of connections of each server: 64, or what the limit of file descriptors leaves
/// after 40 for other uses, but at least 8.
fn connections(descriptors: u64) -> usize {
    usize::try_from(descriptors.saturating_sub(40).clamp(8, 64)).expect("at most 64")
}
