//! The certificates as files, for other programs of the Pod or the machine, as `OUTPUT_CERTS` asks for.

use std::path::PathBuf;
use std::time::Duration;

use agent_output::output;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use crate::mesh_certificates::{MeshCertificates, NAMES, Pair};

/// How soon files are written again that could not be written.
const RETRY: Duration = Duration::from_secs(30);

/// Where the certificates are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFolder {
    pub path: PathBuf,
    /// The mode of the files.
    pub mode: u32,
}

impl OutputFolder {
    /// Writes the certificates whenever they change, each file atomically.
    pub async fn write(self, mut certificates: watch::Receiver<MeshCertificates>) {
        let mut last_error = None;
        loop {
            let written = self.replace(&certificates.borrow_and_update());
            let error = written.err();
            if let Some(error) = error.as_ref().filter(|error| last_error.as_ref() != Some(*error)) {
                warn!(folder = %self.path.display(), error, "certificates not written (OUTPUT_CERTS)");
            }
            let changed = match &error {
                Some(_) => timeout(RETRY, certificates.changed()).await.unwrap_or(Ok(())),
                None => certificates.changed().await,
            };
            last_error = error;
            if changed.is_err() {
                return;
            }
        }
    }

    /// Writes what is known and differs from what the files contain.
    fn replace(&self, certificates: &MeshCertificates) -> Result<(), String> {
        let MeshCertificates { pair, roots } = certificates;
        let [chain_name, key_name, roots_name] = NAMES;
        let pair = pair.iter().flat_map(|Pair { chain, key }| [(key_name, key), (chain_name, chain)]);
        for (name, text) in pair.chain(roots.iter().map(|roots| (roots_name, roots))) {
            let file = self.path.join(name);
            if serving::files::read(&file).is_ok_and(|content| content == text.as_bytes()) {
                continue;
            }
            output::replace_with_mode(&file, text.as_bytes(), self.mode)
                .map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
