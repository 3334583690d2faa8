//! What virtual machines and sidecars of an Istio mesh need: health checks of the workload, their report to a
//! discovery server, and what Envoy gets from one. The cargo feature `vm` includes it; an agent for other Pods is
//! built without.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use envoy_process::random;
use istio_agent::dns::{self, DnsConfig, DnsListeners, TableReceiver};
use istio_agent::mesh_certificates::{self, MountedFiles};
use istio_agent::metrics::{self as istio_metrics, DnsMetrics, SigningMetrics};
use istio_agent::output_certificates::OutputFolder;
use istio_agent::secrets::secrets;
use istio_agent::trust_bundle;
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
    /// `None` if nothing is requested from a CA.
    pub requested: Option<CertificateConfig>,
    pub mounted: MountedFiles,
    /// `None` if certificates are not written to files.
    pub output: Option<OutputFolder>,
    /// True if istiod may add CA certificates to those of the mesh.
    pub has_trust_bundle: bool,
    /// The folder that names of files refer to.
    pub folder: PathBuf,
    /// File with certificate revocation lists.
    pub revoked: Option<PathBuf>,
    /// `None` if no DNS queries are answered.
    pub dns: Option<DnsConfig>,
}

/// What the rest of the agent needs of it.
struct StartedIstio {
    secrets: Secrets,
    /// What the agent itself subscribes to.
    own: Vec<OwnType>,
    /// `None` if no DNS queries are answered.
    names: Option<TableReceiver>,
    tasks: IstioTasks,
}

/// What of it runs; nothing outside of a mesh of Istio.
#[derive(Default)]
struct IstioTasks {
    /// The requests for certificates.
    certificates: Option<JoinHandle<()>>,
    /// Writes certificates to files.
    output: Option<JoinHandle<()>>,
    dns: Option<JoinHandle<()>>,
}

impl IstioConfig {
    /// Starts the tasks. Without a certificate, Envoy waits for one.
    fn start(self, state: &Arc<AgentState>, metrics: &Arc<Metrics>) -> Result<StartedIstio, Failure> {
        let (mut own, mut names, mut tasks) = (Vec::new(), None, IstioTasks::default());
        let (signing, queries) = (Arc::new(SigningMetrics::default()), Arc::new(DnsMetrics::default()));
        let requested = self
            .requested
            .map(|config| workload_certificate::start(config, signing.clone(), random::generator()));
        let (issued, task) = requested.unzip();
        tasks.certificates = task;
        let bundle = self.has_trust_bundle.then(|| {
            let (bundle_type, bundle) = trust_bundle::subscribe();
            own.push(bundle_type);
            bundle
        });
        let certificates = mesh_certificates::start(issued, self.mounted, bundle);
        tasks.output = self.output.map(|output| tokio::spawn(output.write(certificates.clone())));
        let has_dns = self.dns.as_ref().map(|_| &*queries);
        metrics.add(istio_metrics::registry(metrics, signing, has_dns, certificates.clone()));
        let secrets = secrets(certificates, self.folder, self.revoked);
        if let Some(config) = self.dns {
            let (own_type, table, task) = start_dns(config, state, queries)?;
            own.push(own_type);
            (names, tasks.dns) = (Some(table), Some(task));
        }
        Ok(StartedIstio { secrets, own, names, tasks })
    }
}

/// Starts the DNS proxy. The machine is ready once it has names.
fn start_dns(
    config: DnsConfig,
    state: &Arc<AgentState>,
    metrics: Arc<DnsMetrics>,
) -> Result<(OwnType, TableReceiver, JoinHandle<()>), Failure> {
    let listeners = DnsListeners::bind(&config).map_err(|(address, error)| {
        Failure::Os(format!(
            "port {} ({address}): {error}; it serves DNS; DNS_PROXY_ADDR sets another one",
            address.port()
        ))
    })?;
    let (own_type, table, task) = dns::start(config, listeners, metrics, random::generator());
    state.apply(Observation::NamesAwaited);
    let (state, mut awaited) = (state.clone(), table.clone());
    tokio::spawn(async move {
        if awaited.wait_for(Option::is_some).await.is_ok() {
            state.apply(Observation::NamesReceived);
        }
    });
    Ok((own_type, table, task))
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
    istio: IstioTasks,
    /// Ends `reporting`.
    stop: CancellationToken,
}

/// What the local server shows about the workload.
#[derive(Debug, Clone)]
pub struct VmView {
    health: Option<HealthHandle>,
    stream: Option<watch::Receiver<StreamStatus>>,
    xds: Option<watch::Receiver<ProxyView>>,
    /// The DNS names of the mesh.
    names: Option<TableReceiver>,
}

/// Starts probing if a probe is configured or a discovery server may push one, and reporting if
/// there is a discovery server.
pub fn start(
    config: VmConfig,
    state: &Arc<AgentState>,
    awaited_pids: &AwaitedPids,
    metrics: &Arc<Metrics>,
) -> Result<(VmView, VmTasks), Failure> {
    let is_probing = config.health.has_probe() || config.discovery.is_some();
    let (health, probing) = is_probing
        .then(|| workload_prober::start(config.health, state.clone(), awaited_pids.clone(), metrics.clone()))
        .unzip();
    let Some((mut discovery, reported)) = config.discovery.zip(health.clone()) else {
        let view = VmView { health, stream: None, xds: None, names: None };
        let stop = CancellationToken::new();
        return Ok((view, VmTasks { probing, reporting: None, istio: IstioTasks::default(), stop }));
    };
    let (mut secrets, mut names, mut istio) = (None, None, IstioTasks::default());
    if let Some(config) = config.istio {
        let started = config.start(state, metrics)?;
        discovery.own.extend(started.own);
        (secrets, names, istio) = (Some(started.secrets), started.names, started.tasks);
    }
    let RunningClient { stream, xds, task, stop } =
        xds_client::start(discovery, config.proxy, secrets, reported, state.clone(), metrics.clone())?;
    let view = VmView { health, stream: Some(stream), xds, names };
    Ok((view, VmTasks { probing, reporting: Some(task), istio, stop }))
}

impl MachineView for VmView {
    fn health_json(&self) -> Option<Bytes> {
        let stream = self.stream.as_ref().map(|stream| stream.borrow().to_json(Instant::now()));
        self.health.as_ref().map(|health| health.view(&stream.unwrap_or_default()))
    }

    fn names_json(&self) -> Option<Bytes> {
        let table = self.names.as_ref()?.borrow().clone();
        Some(format!("{:#}\n", table.unwrap_or_default().to_json()).into())
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
            failure = tasks::failure_if_any("certificates", &mut self.istio.certificates) => failure,
            failure = tasks::failure_if_any("certificate files", &mut self.istio.output) => failure,
            failure = tasks::failure_if_any("DNS proxy", &mut self.istio.dns) => failure,
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
