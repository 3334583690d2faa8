//! The client certificate files towards the discovery server, reloaded when their content changes.

use std::path::Path;
use std::sync::Arc;

use serving::watched::Watched;
use tracing::{error, info};

use super::config::{DiscoveryConfig, DiscoveryServer};
use super::connection::ServerTarget;
use super::tls::{TlsContent, TlsError};
use agent_state::metrics::Metrics;

/// The servers, each with its TLS client configuration.
pub(crate) struct Certificates {
    targets: Vec<ServerTarget>,
    /// `None` for plaintext.
    watched: Option<Watched<Vec<ServerTarget>>>,
}

impl Certificates {
    /// Reads the files. Returns an error if they cannot be used.
    pub(crate) fn new(config: &DiscoveryConfig) -> Result<Self, TlsError> {
        let (servers, files) = (config.servers.clone(), config.tls.clone());
        let token_file: Option<Arc<Path>> = config.token_file.as_deref().map(Arc::from);
        let Some(files) = files else {
            let target = |server| ServerTarget { server, tls: None, token_file: token_file.clone() };
            return Ok(Self { targets: servers.into_iter().map(target).collect(), watched: None });
        };
        let content = files.read()?;
        let first = targets(&servers, &content, token_file.as_ref())?;
        let read = move || files.read().map_err(|error| error.to_string());
        let parse = move |content: &TlsContent| {
            targets(&servers, content, token_file.as_ref()).map_err(|error| error.to_string())
        };
        Ok(Self { targets: first, watched: Some(Watched::new(content, read, parse)) })
    }

    pub(crate) fn targets(&self) -> &[ServerTarget] {
        &self.targets
    }

    /// Waits until the files have changed and the new ones are in use. Files that cannot be used are
    /// logged, and the previous ones stay in use.
    pub(crate) async fn changed(&mut self, metrics: &Metrics) {
        let Some(watched) = &mut self.watched else { return std::future::pending().await };
        loop {
            match watched.changed().await {
                Ok(targets) => {
                    info!("client certificate of the discovery connection reloaded");
                    metrics.vm.reports.reloaded("ok");
                    self.targets = targets;
                    return;
                }
                Err(error) => {
                    error!(error, "client certificate not reloaded, keeping the previous one");
                    metrics.vm.reports.reloaded("failed");
                }
            }
        }
    }
}

fn targets(
    servers: &[DiscoveryServer],
    content: &TlsContent,
    token_file: Option<&Arc<Path>>,
) -> Result<Vec<ServerTarget>, TlsError> {
    let target = |server: &DiscoveryServer| {
        let tls = Some(content.client(&server.san)?);
        Ok(ServerTarget { server: server.clone(), tls, token_file: token_file.cloned() })
    };
    servers.iter().map(target).collect()
}
