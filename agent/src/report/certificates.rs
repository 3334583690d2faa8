//! The client certificate files towards the discovery server, reloaded when their content changes.

use tracing::{error, info};

use super::connection::{DiscoveryServer, ServerTarget};
use super::tls::{TlsContent, TlsError, TlsFiles};
use crate::metrics::Metrics;

/// The servers, each with its TLS client configuration.
pub(super) struct Certificates {
    servers: Vec<DiscoveryServer>,
    /// `None` for plaintext.
    files: Option<(TlsFiles, TlsContent)>,
    targets: Vec<ServerTarget>,
    /// Why the current files cannot be used; the previous ones stay in use.
    broken: Option<String>,
}

impl Certificates {
    /// Reads the files. Returns an error if they cannot be used.
    pub(super) fn new(servers: Vec<DiscoveryServer>, files: Option<TlsFiles>) -> Result<Self, TlsError> {
        let Some(files) = files else {
            let targets =
                servers.iter().map(|server| ServerTarget { server: server.clone(), tls: None }).collect();
            return Ok(Self { servers, files: None, targets, broken: None });
        };
        let content = files.read()?;
        let targets = targets(&servers, &files, &content)?;
        Ok(Self { servers, files: Some((files, content)), targets, broken: None })
    }

    pub(super) fn targets(&self) -> &[ServerTarget] {
        &self.targets
    }

    /// Reads the files again. Returns true if their content has changed and is in use from now on.
    /// Files that cannot be used are logged, and the previous ones stay in use.
    pub(super) fn reload(&mut self, metrics: &Metrics) -> bool {
        let Some((files, used)) = &mut self.files else { return false };
        let read = files.read().and_then(|content| {
            let changed = content != *used;
            let targets = if changed { Some(targets(&self.servers, files, &content)?) } else { None };
            Ok(targets.map(|targets| (content, targets)))
        });
        match read {
            Ok(None) => {
                self.broken = None;
                false
            }
            Ok(Some((content, targets))) => {
                info!("client certificate of the discovery connection reloaded");
                metrics.reports.reloaded("ok");
                (*used, self.targets, self.broken) = (content, targets, None);
                true
            }
            Err(wrong) => {
                let wrong = Some(wrong.to_string());
                if self.broken != wrong {
                    error!(why = wrong, "client certificate not reloaded, keeping the previous one");
                    metrics.reports.reloaded("failed");
                    self.broken = wrong;
                }
                false
            }
        }
    }
}

fn targets(
    servers: &[DiscoveryServer],
    files: &TlsFiles,
    content: &TlsContent,
) -> Result<Vec<ServerTarget>, TlsError> {
    let target = |server: &DiscoveryServer| {
        Ok(ServerTarget { server: server.clone(), tls: Some(files.client(content, &server.san)?) })
    };
    servers.iter().map(target).collect()
}
