//! What virtual machines and sidecars of an Istio mesh need: health checks of the workload, their report to a
//! discovery server, and what Envoy gets from one. The cargo feature `vm` includes it; an agent for other Pods is
//! built without.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use envoy_process::random;
use istio_agent::dns::{self, DnsConfig, DnsListeners};
use istio_agent::secrets::secrets;
use istio_agent::workload_certificate::{self, CertificateConfig};
use readiness::Observation;
use serving::page::Table;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::tasks;
use agent_output::exit::Failure;
use agent_server::machine_view::MachineView;
use agent_state::awaited_pids::AwaitedPids;
use agent_state::metrics::Metrics;
use agent_state::state::AgentState;
use workload_prober::{HealthConfig, HealthHandle};
use xds_client::secrets::Secrets;
use xds_client::{DiscoveryConfig, OwnType, ProxyConfig, RunningClient, StreamStatus};
use xds_proxy::ProxyView;

#[derive(Debug)]
pub struct VmConfig {
    pub health: HealthConfig,
    /// `None` if health is not reported.
    pub discovery: Option<DiscoveryConfig>,
    /// `None` if Envoy does not get its xDS from the agent; set only with `discovery`.
    pub proxy: Option<ProxyConfig>,
    /// True if a rendered bootstrap uses the incremental variant of xDS.
    pub is_delta: bool,
    /// What a sidecar of an Istio mesh needs in addition; set only with `proxy`.
    pub istio: Option<IstioConfig>,
}

/// What a sidecar of an Istio mesh does beside its Envoy.
#[derive(Debug)]
pub struct IstioConfig {
    pub certificate: CertificateConfig,
    /// The folder that names of files refer to.
    pub folder: PathBuf,
    /// File with certificate revocation lists.
    pub revoked: Option<PathBuf>,
    /// `None` if no DNS queries are answered.
    pub dns: Option<DnsConfig>,
}

/// What of it runs.
struct IstioTasks {
    secrets: Secrets,
    own: Option<OwnType>,
    certificates: JoinHandle<()>,
    dns: Option<JoinHandle<()>>,
}

impl IstioConfig {
    /// Starts the tasks. Without a certificate, Envoy waits for one.
    fn start(self, state: &Arc<AgentState>) -> Result<IstioTasks, Failure> {
        let (certificate, certificates) = workload_certificate::start(self.certificate, random::generator());
        let secrets = secrets(certificate, self.folder, self.revoked);
        let Some(config) = self.dns else {
            return Ok(IstioTasks { secrets, own: None, certificates, dns: None });
        };
        let listeners = DnsListeners::bind(&config).map_err(|(address, error)| {
            Failure::Os(format!(
                "port {} ({address}): {error}; it serves DNS; DNS_PROXY_ADDR sets another one",
                address.port()
            ))
        })?;
        let (own, mut table, task) = dns::start(config, listeners, random::generator());
        state.apply(Observation::NamesAwaited);
        let state = state.clone();
        tokio::spawn(async move {
            if table.wait_for(Option::is_some).await.is_ok() {
                state.apply(Observation::NamesReceived);
            }
        });
        Ok(IstioTasks { secrets, own: Some(own), certificates, dns: Some(task) })
    }
}

impl VmConfig {
    /// Returns true if the machine is healthy only with a ready Envoy.
    pub fn requires_envoy(&self) -> bool {
        self.health.envoy_readiness
    }
}

/// The running tasks of a virtual machine.
pub struct VmTasks {
    /// `None` if the workload is not probed.
    probing: Option<JoinHandle<()>>,
    /// The stream to a discovery server; `None` if there is none.
    reporting: Option<JoinHandle<()>>,
    /// The requests for certificates; `None` if they come from files.
    certificates: Option<JoinHandle<()>>,
    /// `None` if no DNS queries are answered.
    dns: Option<JoinHandle<()>>,
    /// Ends `reporting`.
    stop: CancellationToken,
}

/// What the local server shows about the workload.
#[derive(Debug, Clone)]
pub struct VmView {
    health: Option<HealthHandle>,
    stream: Option<watch::Receiver<StreamStatus>>,
    xds: Option<watch::Receiver<ProxyView>>,
}

/// Starts probing if a probe is configured or a discovery server may push one, and reporting if
/// there is a discovery server.
pub fn start(
    config: VmConfig,
    state: &Arc<AgentState>,
    awaited_pids: &AwaitedPids,
    metrics: &Arc<Metrics>,
) -> Result<(VmView, VmTasks), Failure> {
    let is_probing = config.health.group.is_some() || config.discovery.is_some();
    let (health, probing) = is_probing
        .then(|| workload_prober::start(config.health, state.clone(), awaited_pids.clone(), metrics.clone()))
        .unzip();
    let Some((mut discovery, reported)) = config.discovery.zip(health.clone()) else {
        let view = VmView { health, stream: None, xds: None };
        let stop = CancellationToken::new();
        return Ok((view, VmTasks { probing, reporting: None, certificates: None, dns: None, stop }));
    };
    let istio = config.istio.map(|istio| istio.start(state)).transpose()?;
    let (mut secrets, mut certificates, mut dns) = (None, None, None);
    if let Some(istio) = istio {
        discovery.own.extend(istio.own);
        (secrets, certificates, dns) = (Some(istio.secrets), Some(istio.certificates), istio.dns);
    }
    let RunningClient { stream, xds, task, stop } =
        xds_client::start(discovery, config.proxy, secrets, reported, state.clone(), metrics.clone())?;
    let view = VmView { health, stream: Some(stream), xds };
    Ok((view, VmTasks { probing, reporting: Some(task), certificates, dns, stop }))
}

impl MachineView for VmView {
    fn health_json(&self) -> Option<Bytes> {
        let stream = self.stream.as_ref().map(|stream| stream.borrow().to_json(Instant::now()));
        self.health.as_ref().map(|health| health.view(&stream.unwrap_or_default()))
    }

    fn tables(&self) -> Vec<Table> {
        let Some(health) = &self.health else { return Vec::new() };
        let stream =
            self.stream.as_ref().map(|stream| xds_client::stream_table(&stream.borrow(), health.started()));
        let xds = self.xds.as_ref().map(|view| xds_client::type_table(&view.borrow()));
        [Some(health.table()), stream, xds].into_iter().flatten().collect()
    }

    fn xds_json(&self) -> Option<Bytes> {
        let view = self.xds.as_ref()?.borrow();
        Some(format!("{:#}\n", xds_client::to_json(&view)).into())
    }
}

impl VmTasks {
    /// Waits until a task ends that must run as long as the agent.
    pub async fn failure(&mut self) -> Failure {
        tokio::select! {
            failure = tasks::failure_if_any("health", &mut self.probing) => failure,
            failure = tasks::failure_if_any("xDS client", &mut self.reporting) => failure,
            failure = tasks::failure_if_any("certificates", &mut self.certificates) => failure,
            failure = tasks::failure_if_any("DNS proxy", &mut self.dns) => failure,
        }
    }

    /// Waits for the final report, and until the last xDS configuration is stored. The limit of the
    /// report is --final-report-timeout, which includes the time that Envoy took to exit.
    pub async fn finish(self) -> Result<(), Failure> {
        self.stop.cancel();
        match self.reporting.filter(|reporting| !reporting.is_finished()) {
            Some(reporting) => reporting.await.map_err(|error| tasks::error("xDS client", Some(error))),
            None => Ok(()),
        }
    }
}
