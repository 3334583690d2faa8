//! What performs a probe of any kind, within its one deadline.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use workload_health::{HealthReason, Outcome, Unhealthy, WorkloadHandler, WorkloadProbe};

use super::target::{self, Targets};
use super::{TargetRules, exec, grpc, http, tls};
use crate::children::Children;

/// Everything that probers share; clones are the same.
#[derive(Clone)]
pub(super) struct Prober(Arc<Surroundings>);

struct Surroundings {
    targets: Targets,
    /// What commands see of the environment.
    exec_environment: Vec<(&'static str, OsString)>,
    children: Children,
    /// Made for the first https probe.
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

    /// One probe. Dropped before its end it leaves neither connection nor process.
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
        // A command has to be ended, which it sees to by itself.
        let ended = match &probe.handler {
            WorkloadHandler::Exec { .. } => asked.await,
            _ => timeout(probe.timeout, asked).await.unwrap_or_else(|_| {
                let text = format!("no answer within {} s", probe.timeout.as_secs());
                Err(Unhealthy::new(HealthReason::Timeout, &text))
            }),
        };
        match ended {
            Ok(()) => Outcome::Healthy,
            Err(unhealthy) => Outcome::Unhealthy(unhealthy),
        }
    }
}
