//! The client certificate files towards the discovery server, reloaded when their content changes.

use serving::watched::Watched;
use tracing::{error, info};

use super::config::DiscoveryConfig;
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
        let target = |server| ServerTarget {
            server,
            tls: None,
            token: config.token.clone(),
            headers: config.headers.clone(),
        };
        let plaintext: Vec<ServerTarget> = config.servers.iter().cloned().map(target).collect();
        let Some(files) = config.tls.clone() else {
            return Ok(Self { targets: plaintext, watched: None });
        };
        let content = files.read()?;
        let first = targets(&plaintext, &content)?;
        let read = move || files.read().map_err(|error| error.to_string());
        let parse =
            move |content: &TlsContent| targets(&plaintext, content).map_err(|error| error.to_string());
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

/// Returns these targets with TLS.
fn targets(plaintext: &[ServerTarget], content: &TlsContent) -> Result<Vec<ServerTarget>, TlsError> {
    let target = |target: &ServerTarget| {
        let tls = Some(content.client(&target.server.san)?);
        Ok(ServerTarget { tls, ..target.clone() })
    };
    plaintext.iter().map(target).collect()
}
