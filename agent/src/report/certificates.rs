//! The client certificate files towards the discovery server, reloaded when their content changes.

use serving::watched::Watched;
use tracing::{error, info};

use super::config::DiscoveryServer;
use super::connection::ServerTarget;
use super::tls::{TlsContent, TlsError, TlsFiles};
use crate::metrics::Metrics;

/// The servers, each with its TLS client configuration.
pub(super) struct Certificates {
    targets: Vec<ServerTarget>,
    /// `None` for plaintext.
    watched: Option<Watched<Vec<ServerTarget>>>,
}

impl Certificates {
    /// Reads the files. Returns an error if they cannot be used.
    pub(super) fn new(servers: Vec<DiscoveryServer>, files: Option<TlsFiles>) -> Result<Self, TlsError> {
        let Some(files) = files else {
            let targets = servers.into_iter().map(|server| ServerTarget { server, tls: None }).collect();
            return Ok(Self { targets, watched: None });
        };
        let content = files.read()?;
        let first = targets(&servers, &content)?;
        let read = move || files.read().map_err(|error| error.to_string());
        let parse = move |content: &TlsContent| targets(&servers, content).map_err(|error| error.to_string());
        Ok(Self { targets: first, watched: Some(Watched::new(content, read, parse)) })
    }

    pub(super) fn targets(&self) -> &[ServerTarget] {
        &self.targets
    }

    /// Waits until the files have changed and the new ones are in use. Files that cannot be used are
    /// logged, and the previous ones stay in use.
    pub(super) async fn changed(&mut self, metrics: &Metrics) {
        let Some(watched) = &mut self.watched else { return std::future::pending().await };
        loop {
            match watched.changed().await {
                Ok(targets) => {
                    info!("client certificate of the discovery connection reloaded");
                    metrics.reports.reloaded("ok");
                    self.targets = targets;
                    return;
                }
                Err(error) => {
                    error!(error, "client certificate not reloaded, keeping the previous one");
                    metrics.reports.reloaded("failed");
                }
            }
        }
    }
}

fn targets(servers: &[DiscoveryServer], content: &TlsContent) -> Result<Vec<ServerTarget>, TlsError> {
    let target = |server: &DiscoveryServer| {
        Ok(ServerTarget { server: server.clone(), tls: Some(content.client(&server.san)?) })
    };
    servers.iter().map(target).collect()
}
