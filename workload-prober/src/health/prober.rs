//! Runs a probe of any kind within its timeout.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use workload_health::{HealthReason, Outcome, Unhealthy, WorkloadHandler, WorkloadProbe};

use super::target::{self, TargetResolver};
use super::{TargetRules, exec, grpc, http, tls};
use agent_state::awaited_pids::AwaitedPids;

/// State that all probes share; clones refer to the same state.
#[derive(Clone)]
pub(super) struct Prober(Arc<ProberContext>);

struct ProberContext {
    targets: TargetResolver,
    /// Environment variables for exec probes.
    exec_environment: Vec<(&'static str, OsString)>,
    awaited_pids: AwaitedPids,
    /// Created for the first HTTPS probe.
    tls: OnceLock<TlsConnector>,
}

impl Prober {
    pub(super) fn new(
        rules: TargetRules,
        exec_environment: Vec<(&'static str, OsString)>,
        awaited_pids: AwaitedPids,
    ) -> Self {
        let targets = TargetResolver::new(rules);
        Self(Arc::new(ProberContext { targets, exec_environment, awaited_pids, tls: OnceLock::new() }))
    }

    /// Runs one probe. Dropping the future closes the connection and kills the command's processes.
    pub(super) async fn probe(&self, probe: &WorkloadProbe) -> Outcome {
        let ProberContext { targets, exec_environment, awaited_pids, tls } = &*self.0;
        let probe_future = async {
            match &probe.handler {
                WorkloadHandler::HttpGet(get) => {
                    http::probe(get, targets, || tls.get_or_init(tls::connector).clone()).await
                }
                WorkloadHandler::TcpSocket { port, host } => {
                    target::check_tcp(&targets.resolve(host.as_deref(), *port).await?).await
                }
                WorkloadHandler::Grpc { port, service } => {
                    grpc::probe(&targets.resolve(None, *port).await?, service, probe.timeout).await
                }
                WorkloadHandler::Exec { command } => {
                    exec::probe(command, exec_environment, awaited_pids, probe.timeout).await
                }
            }
        };
        // An exec probe applies the timeout itself, because it must kill the command.
        let result = match &probe.handler {
            WorkloadHandler::Exec { .. } => probe_future.await,
            _ => timeout(probe.timeout, probe_future).await.unwrap_or_else(|_| {
                let text = format!("no response within {} s", probe.timeout.as_secs());
                Err(Unhealthy::new(HealthReason::Timeout, &text))
            }),
        };
        match result {
            Ok(()) => Outcome::Healthy,
            Err(unhealthy) => Outcome::Unhealthy(unhealthy),
        }
    }
}
