//! Runs a probe of any kind within its timeout.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use workload_health::{HealthReason, Outcome, Unhealthy, WorkloadHandler, WorkloadProbe};

use super::target::{self, Targets};
use super::{TargetRules, exec, grpc, http, tls};
use crate::children::Children;

/// State that all probes share; clones refer to the same state.
#[derive(Clone)]
pub(super) struct Prober(Arc<Surroundings>);

struct Surroundings {
    targets: Targets,
    /// Environment variables for exec probes.
    exec_environment: Vec<(&'static str, OsString)>,
    children: Children,
    /// Created for the first HTTPS probe.
    tls: OnceLock<TlsConnector>,
}

impl Prober {
    pub(super) fn new(
        rules: TargetRules,
        exec_environment: Vec<(&'static str, OsString)>,
        children: Children,
    ) -> Self {
        let targets = Targets::new(rules);
        Self(Arc::new(Surroundings { targets, exec_environment, children, tls: OnceLock::new() }))
    }

    /// Runs one probe. Dropping the future closes the connection and kills the command's processes.
    pub(super) async fn probe(&self, probe: &WorkloadProbe) -> Outcome {
        let Surroundings { targets, exec_environment, children, tls } = &*self.0;
        let asked = async {
            match &probe.handler {
                WorkloadHandler::HttpGet(get) => {
                    http::probe(get, targets, || tls.get_or_init(tls::connector).clone()).await
                }
                WorkloadHandler::TcpSocket { port, host } => {
                    target::reach(&targets.find(host.as_deref(), *port).await?).await
                }
                WorkloadHandler::Grpc { port, service } => {
                    grpc::probe(&targets.find(None, *port).await?, service).await
                }
                WorkloadHandler::Exec { command } => {
                    exec::probe(command, exec_environment, children, probe.timeout).await
                }
            }
        };
        // An exec probe applies the timeout itself, because it must kill the command.
        let ended = match &probe.handler {
            WorkloadHandler::Exec { .. } => asked.await,
            _ => timeout(probe.timeout, asked).await.unwrap_or_else(|_| {
                let text = format!("no response within {} s", probe.timeout.as_secs());
                Err(Unhealthy::new(HealthReason::Timeout, &text))
            }),
        };
        match ended {
            Ok(()) => Outcome::Healthy,
            Err(unhealthy) => Outcome::Unhealthy(unhealthy),
        }
    }
}
