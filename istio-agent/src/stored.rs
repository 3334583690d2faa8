//! The certificate of an earlier process of this Pod, in a directory in memory. With it, a restarted Envoy
//! serves mutual TLS while istiod is unavailable.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_output::output;
use istio_certificates::identity::WorkloadIdentity;
use istio_certificates::issued::Issued;
use istio_certificates::pem;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

/// Maximum size of the file in bytes.
const SIZE_LIMIT: u64 = 1 << 20;
const FILE: &str = "certificate.json";

/// The file with the certificate.
pub(crate) struct StoredCertificate {
    path: PathBuf,
    identity: String,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Content {
    identity: String,
    chain: String,
    key: String,
    roots: String,
    /// Seconds since 1970.
    created: u64,
    not_after: u64,
}

impl StoredCertificate {
    pub(crate) fn new(state_dir: PathBuf, identity: &WorkloadIdentity) -> Self {
        Self { path: state_dir.join(FILE), identity: identity.to_string() }
    }

    /// Returns the certificate, unless there is none for this workload that can be used.
    pub(crate) fn load(&self) -> Option<Issued> {
        let path = self.path.display();
        let bytes = match self.read() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                warn!(%path, %error, "stored certificate not used");
                return None;
            }
        };
        let content: Content = serde_json::from_slice(&bytes).ok()?;
        if content.identity != self.identity {
            info!(%path, "stored certificate not used: it is that of another workload");
            return None;
        }
        let Content { chain, key, roots, created, not_after, .. } = content;
        if let Err(error) = pem::check_pair(&chain, &key) {
            warn!(%path, %error, "stored certificate not used");
            return None;
        }
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        Some(Issued { chain, key, roots, created: at(created), not_after: at(not_after) })
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let found = fs::symlink_metadata(&self.path)?;
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(io::Error::other("not a regular file that only this user can read and write"));
        }
        if found.len() > SIZE_LIMIT {
            return Err(io::Error::other("too large"));
        }
        fs::read(&self.path)
    }

    /// Replaces the file. Its mode is 0600.
    pub(crate) fn store(&self, issued: &Issued) {
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let content = Content {
            identity: self.identity.clone(),
            chain: issued.chain.clone(),
            key: issued.key.clone(),
            roots: issued.roots.clone(),
            created: seconds(issued.created),
            not_after: seconds(issued.not_after),
        };
        let written = serde_json::to_vec(&content)
            .map_err(io::Error::other)
            .and_then(|bytes| output::replace(&self.path, &bytes));
        if let Err(error) = written {
            warn!(path = %self.path.display(), %error, "certificate not stored: a restart needs istiod");
        }
    }
}

#[cfg(test)]
mod tests;
