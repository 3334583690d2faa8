//! The secrets that Envoy asks for on the socket of the workload.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use istio_certificates::pem;
use istio_certificates::secret_name::SecretName;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;
use xds_client::secrets::{SecretMap, Secrets, Subscription, encode_certificate, encode_roots};

use crate::files::{Content, follow, read};
use crate::mesh_certificates::{MeshCertificates, Pair};

const WORKLOAD: &str = "default";
const ROOTS: &str = "ROOTCA";
/// Maximum number of secrets from files at a time, besides the CA certificates of the system, which all clusters share.
const FILES: usize = 256;
/// The CA certificates of operating systems, of which the first file that exists is used.
const SYSTEM_ROOTS: [&str; 8] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates",
];

/// Returns the CA certificates of the operating system, if there are any.
pub fn system_roots() -> Option<PathBuf> {
    SYSTEM_ROOTS.iter().map(PathBuf::from).find(|file| file.exists())
}

/// Serves the certificates of the mesh, and files by their names, which `folder` completes. `revoked` is a file with
/// certificate revocation lists, which need not exist. Must be called in a runtime.
pub fn secrets(
    certificates: watch::Receiver<MeshCertificates>,
    folder: PathBuf,
    revoked: Option<PathBuf>,
) -> Secrets {
    let served = Arc::new(Served { secrets: watch::Sender::new(Arc::default()), files: Mutex::default() });
    let current = served.secrets.subscribe();
    let lists = revocation_lists(revoked);
    tokio::spawn(serve_mesh(certificates, lists.clone(), served.clone()));
    let request = move |name: &str| -> Option<Subscription> {
        match files_of(&SecretName::parse(name)?, &folder) {
            Some(files) => Some(served.follow(name, files, &lists)?),
            None => Some(Arc::new(())),
        }
    };
    Secrets { current, request: Arc::new(request) }
}

/// The secrets that exist, and those from files that streams subscribe to.
struct Served {
    secrets: watch::Sender<Arc<SecretMap>>,
    files: Mutex<BTreeMap<String, Weak<Followed>>>,
}

impl Served {
    /// Serves a secret from files until the result is dropped; `None` if there are too many.
    fn follow(self: &Arc<Self>, name: &str, files: SecretFiles, lists: &Lists) -> Option<Arc<Followed>> {
        let mut followed = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = followed.get(name).and_then(Weak::upgrade) {
            return Some(found);
        }
        if followed.len() >= FILES && !matches!(files, SecretFiles::SystemRoots) {
            warn!(name, "secret not served: {FILES} secrets from files are served already");
            return None;
        }
        let task = tokio::spawn(serve_files(name.to_owned(), files, lists.clone(), self.clone()));
        let task = AbortOnDropHandle::new(task);
        let found = Arc::new(Followed { name: name.to_owned(), served: self.clone(), _task: task });
        followed.insert(name.to_owned(), Arc::downgrade(&found));
        Some(found)
    }

    fn put(&self, name: &str, secret: Bytes) {
        self.secrets.send_if_modified(|map| {
            let is_new = map.get(name) != Some(&secret);
            if is_new {
                Arc::make_mut(map).insert(name.to_owned(), secret);
            }
            is_new
        });
    }
}

/// A secret from files that streams subscribe to.
struct Followed {
    name: String,
    served: Arc<Served>,
    _task: AbortOnDropHandle<()>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut followed = self.served.files.lock().unwrap_or_else(PoisonError::into_inner);
        // Another stream may have subscribed again.
        if followed.get(&self.name).is_some_and(|found| found.strong_count() == 0) {
            followed.remove(&self.name);
            self.served.secrets.send_if_modified(|map| Arc::make_mut(map).remove(&self.name).is_some());
        }
    }
}

/// The revocation lists as they are now. If the file exists and cannot be read, the previous ones stay in use, because
/// certificates would be accepted that were revoked.
type Lists = Content<Option<String>>;

fn revocation_lists(file: Option<PathBuf>) -> Lists {
    let Some(file) = file else { return watch::channel(None).1 };
    let read_lists = move || match fs::metadata(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => read(&file).map(Some),
    };
    follow("certificate revocation lists".to_owned(), read_lists, |lists| Ok(lists.clone()))
}

/// Returns the lists that belong to CA certificates now.
fn latest(lists: &mut Lists) -> Option<String> {
    lists.borrow_and_update().as_deref().cloned().flatten()
}

/// Serves the certificate and the CA certificates of the mesh.
async fn serve_mesh(
    mut certificates: watch::Receiver<MeshCertificates>,
    mut lists: Lists,
    served: Arc<Served>,
) {
    loop {
        let MeshCertificates { pair, roots } = certificates.borrow_and_update().clone();
        let revoked = latest(&mut lists);
        if let Some(roots) = roots {
            served.put(ROOTS, encode_roots(ROOTS, roots.as_bytes(), revoked.as_deref().map(str::as_bytes)));
        }
        if let Some(Pair { chain, key }) = pair {
            served.put(WORKLOAD, encode_certificate(WORKLOAD, chain.as_bytes(), key.as_bytes()));
        }
        tokio::select! {
            changed = certificates.changed() => if changed.is_err() { return },
            Ok(()) = lists.changed() => {}
        }
    }
}

/// The files of a secret.
enum SecretFiles {
    Roots(PathBuf),
    /// The certificate with its chain, and its key.
    Certificate([PathBuf; 2]),
    SystemRoots,
}

/// Returns the files that a name stands for; `None` for the certificates of the mesh.
fn files_of(name: &SecretName, folder: &Path) -> Option<SecretFiles> {
    match name {
        SecretName::Workload | SecretName::MeshRoots => None,
        SecretName::SystemRoots => Some(SecretFiles::SystemRoots),
        SecretName::FileRoots(file) => Some(SecretFiles::Roots(folder.join(file))),
        SecretName::FileCertificate { certificate, key } => {
            Some(SecretFiles::Certificate([certificate, key].map(|file| folder.join(file))))
        }
    }
}

/// What the files of a secret contain; PEM texts.
enum FileSecret {
    Roots(String),
    Certificate { chain: String, key: String },
}

/// Serves a secret from files.
async fn serve_files(name: String, files: SecretFiles, mut lists: Lists, served: Arc<Served>) {
    let mut content = follow(name.clone(), move || files.read(), FileSecret::parse);
    loop {
        let (found, revoked) = (content.borrow_and_update().clone(), latest(&mut lists));
        let secret = match found.as_deref() {
            None => None,
            Some(FileSecret::Certificate { chain, key }) => {
                Some(encode_certificate(&name, chain.as_bytes(), key.as_bytes()))
            }
            Some(FileSecret::Roots(roots)) => {
                Some(encode_roots(&name, roots.as_bytes(), revoked.as_deref().map(str::as_bytes)))
            }
        };
        if let Some(secret) = secret {
            served.put(&name, secret);
        }
        tokio::select! {
            changed = content.changed() => if changed.is_err() { return },
            Ok(()) = lists.changed() => {}
        }
    }
}

impl SecretFiles {
    fn read(&self) -> Result<Vec<String>, String> {
        match self {
            Self::Roots(file) => Ok(vec![read(file)?]),
            Self::Certificate(files) => files.iter().map(|file| read(file)).collect(),
            Self::SystemRoots => {
                let file = system_roots().ok_or("this system has no CA certificates at a known place")?;
                Ok(vec![read(&file)?])
            }
        }
    }
}

impl FileSecret {
    /// Checks the texts: one with CA certificates, or a certificate and its key.
    fn parse(texts: &Vec<String>) -> Result<Self, String> {
        if let [chain, key] = texts.as_slice() {
            pem::check_pair(chain, key).map_err(|error| error.to_string())?;
            return Ok(Self::Certificate { chain: chain.clone(), key: key.clone() });
        }
        let found = texts.iter().flat_map(|text| pem::certificates(text));
        let roots: String = found.flat_map(|text| [text, "\n"]).collect();
        if roots.is_empty() {
            return Err("no PEM-encoded certificate".to_owned());
        }
        Ok(Self::Roots(roots))
    }
}

#[cfg(test)]
mod tests;
