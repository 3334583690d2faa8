//! The certificate of the workload and the CA certificates of the mesh: from the CA of istiod, or from files that
//! another program has put where Istio's agent looks for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use istio_certificates::issued::Issued;
use istio_certificates::pem;
use tokio::sync::watch;

use crate::files::{Content, follow, read};

/// PEM texts that Envoy gets; `None` until there are any.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MeshCertificates {
    pub pair: Option<Pair>,
    /// CA certificates, sorted and each once.
    pub roots: Option<String>,
}

/// A certificate with its chain, and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    pub chain: String,
    pub key: String,
}

/// Files that are used in place of what the CA of istiod issues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountedFiles {
    /// The certificate with its chain, and its key.
    pub pair: Option<[PathBuf; 2]>,
    pub roots: Option<PathBuf>,
}

impl MountedFiles {
    /// Returns the files of a folder with Istio's names.
    pub fn of(folder: &Path) -> Self {
        let [chain, key, roots] = NAMES.map(|name| folder.join(name));
        Self { pair: Some([chain, key]), roots: Some(roots) }
    }

    /// Returns the files of these that exist; a certificate without its key does not count.
    #[must_use]
    pub fn existing(self) -> Self {
        let exist = |files: &[PathBuf; 2]| files.iter().all(|file| file.is_file());
        Self { pair: self.pair.filter(exist), roots: self.roots.filter(|file| file.is_file()) }
    }

    /// Returns true if there are files for everything, so that no CA is needed.
    pub fn is_complete(&self) -> bool {
        self.pair.is_some() && self.roots.is_some()
    }
}

/// Names of the files: the certificate with its chain, its key, and the CA certificates.
pub const NAMES: [&str; 3] = ["cert-chain.pem", "key.pem", "root-cert.pem"];

/// Combines what the CA has issued with files, which take precedence, and with the CA certificates that istiod
/// adds to those of the mesh. Must be called in a runtime.
pub fn start(
    issued: Option<Content<Issued>>,
    mounted: MountedFiles,
    bundle: Option<Content<String>>,
) -> watch::Receiver<MeshCertificates> {
    let pair = mounted.pair.map(|[chain, key]| {
        let name = chain.display().to_string();
        follow(name, move || Ok(Pair { chain: read(&chain)?, key: read(&key)? }), checked)
    });
    let roots = mounted.roots.map(|file| {
        let parse = |text: &String| match pem::certificates(text).next() {
            Some(_) => Ok(text.clone()),
            None => Err("no PEM-encoded certificate".to_owned()),
        };
        follow(file.display().to_string(), move || read(&file), parse)
    });
    let mut sources = Sources { issued, pair, roots, bundle };
    let (sender, certificates) = watch::channel(sources.combine());
    tokio::spawn(async move {
        while !sender.is_closed() {
            sources.changed().await;
            let now = sources.combine();
            sender.send_if_modified(|last| std::mem::replace(last, now.clone()) != now);
        }
    });
    certificates
}

fn checked(pair: &Pair) -> Result<Pair, String> {
    pem::check_pair(&pair.chain, &pair.key).map_err(|error| error.to_string())?;
    Ok(pair.clone())
}

/// Where the certificates come from. Files that do not exist are `None`.
struct Sources {
    issued: Option<Content<Issued>>,
    pair: Option<Content<Pair>>,
    roots: Option<Content<String>>,
    bundle: Option<Content<String>>,
}

impl Sources {
    fn combine(&mut self) -> MeshCertificates {
        let issued = latest(&mut self.issued);
        let pair = match &mut self.pair {
            None => {
                issued.as_ref().map(|issued| Pair { chain: issued.chain.clone(), key: issued.key.clone() })
            }
            files => latest(files).as_deref().cloned(),
        };
        let roots = match &mut self.roots {
            None => issued.map(|issued| issued.roots.clone()),
            files => latest(files).as_deref().cloned(),
        };
        let bundle = latest(&mut self.bundle);
        let added = bundle.as_ref().map_or("", |bundle| bundle.as_str());
        MeshCertificates { pair, roots: roots.map(|roots| pem::roots([roots.as_str(), added])) }
    }

    /// Waits until one of them changes.
    async fn changed(&mut self) {
        tokio::select! {
            () = changed(&mut self.issued) => {}
            () = changed(&mut self.pair) => {}
            () = changed(&mut self.roots) => {}
            () = changed(&mut self.bundle) => {}
        }
    }
}

fn latest<T>(content: &mut Option<Content<T>>) -> Option<Arc<T>> {
    content.as_mut()?.borrow_and_update().clone()
}

/// Waits for a change, forever if there will be none.
async fn changed<T>(content: &mut Option<Content<T>>) {
    if let Some(content) = content
        && content.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests;
