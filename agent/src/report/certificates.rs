//! The certificate files of this moment, read again by content.

use std::sync::Arc;

use rustls::ClientConfig;
use tracing::{error, info};

use super::tls::{TlsContent, TlsError, TlsFiles};
use crate::config::DiscoveryServer;
use crate::metrics::Metrics;

/// The servers, each with what its handshake needs.
pub(super) struct Certificates {
    servers: Vec<DiscoveryServer>,
    /// Absent: plaintext.
    files: Option<(TlsFiles, TlsContent)>,
    clients: Vec<(DiscoveryServer, Option<Arc<ClientConfig>>)>,
    /// Why the files of this moment are not used.
    broken: Option<String>,
}

impl Certificates {
    /// Reads the files once. `Err`: they cannot be used.
    pub(super) fn new(servers: Vec<DiscoveryServer>, files: Option<TlsFiles>) -> Result<Self, TlsError> {
        let Some(files) = files else {
            let clients = servers.iter().map(|server| (server.clone(), None)).collect();
            return Ok(Self { servers, files: None, clients, broken: None });
        };
        let content = files.read()?;
        let clients = clients(&servers, &files, &content)?;
        Ok(Self { servers, files: Some((files, content)), clients, broken: None })
    }

    /// Whom to connect to, and how.
    pub(super) fn clients(&self) -> &[(DiscoveryServer, Option<Arc<ClientConfig>>)] {
        &self.clients
    }

    /// Looks at the files again. `true`: they are others, and are used from now on. What cannot be used changes nothing.
    pub(super) fn reload(&mut self, metrics: &Metrics) -> bool {
        let Some((files, used)) = &mut self.files else { return false };
        let read = files.read().and_then(|content| {
            let changed = content != *used;
            let clients = if changed { Some(clients(&self.servers, files, &content)?) } else { None };
            Ok(clients.map(|clients| (content, clients)))
        });
        match read {
            Ok(None) => {
                self.broken = None;
                false
            }
            Ok(Some((content, clients))) => {
                info!("new certificate files towards the discovery server");
                metrics.reports.reloaded("ok");
                (*used, self.clients, self.broken) = (content, clients, None);
                true
            }
            Err(wrong) => {
                let wrong = Some(wrong.to_string());
                if self.broken != wrong {
                    error!(why = wrong, "certificate files cannot be used, the old ones stay");
                    metrics.reports.reloaded("failed");
                    self.broken = wrong;
                }
                false
            }
        }
    }
}

fn clients(
    servers: &[DiscoveryServer],
    files: &TlsFiles,
    content: &TlsContent,
) -> Result<Vec<(DiscoveryServer, Option<Arc<ClientConfig>>)>, TlsError> {
    servers.iter().map(|server| Ok((server.clone(), Some(files.client(content, &server.san)?)))).collect()
}
