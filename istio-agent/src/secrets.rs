//! The secrets that Envoy asks for on the socket of the workload.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use istio_certificates::pem;
use istio_certificates::secret_name::SecretName;
use tokio::sync::watch;
use tracing::warn;
use xds_client::secrets::{SecretMap, Secrets, encode_certificate, encode_roots};

use crate::files::{Content, follow, read};
use crate::mesh_certificates::{MeshCertificates, Pair};

const WORKLOAD: &str = "default";
const ROOTS: &str = "ROOTCA";
/// Maximum number of secrets from files, besides the CA certificates of the system, which all clusters share.
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
    let (sender, current) = watch::channel(Arc::new(SecretMap::new()));
    let sender = Arc::new(sender);
    let lists = revocation_lists(revoked);
    tokio::spawn(serve_mesh(certificates, lists.clone(), sender.clone()));
    let followed: Mutex<BTreeSet<String>> = Mutex::default();
    let request = move |name: &str| {
        let Some(parsed) = SecretName::parse(name) else { return false };
        let Some(files) = files_of(&parsed, &folder) else { return true };
        let mut followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.contains(name) {
            return true;
        }
        if followed.len() >= FILES && !matches!(files, SecretFiles::SystemRoots) {
            warn!(name, "secret not served: {FILES} secrets from files are served already");
            return false;
        }
        followed.insert(name.to_owned());
        tokio::spawn(serve_files(name.to_owned(), files, lists.clone(), sender.clone()));
        true
    };
    Secrets { current, request: Arc::new(request) }
}

type Sender = Arc<watch::Sender<Arc<SecretMap>>>;

fn put(sender: &Sender, name: &str, secret: Bytes) {
    sender.send_if_modified(|map| {
        let is_new = map.get(name) != Some(&secret);
        if is_new {
            Arc::make_mut(map).insert(name.to_owned(), secret);
        }
        is_new
    });
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
async fn serve_mesh(mut certificates: watch::Receiver<MeshCertificates>, mut lists: Lists, sender: Sender) {
    loop {
        let MeshCertificates { pair, roots } = certificates.borrow_and_update().clone();
        let revoked = latest(&mut lists);
        if let Some(roots) = roots {
            put(&sender, ROOTS, encode_roots(ROOTS, roots.as_bytes(), revoked.as_deref().map(str::as_bytes)));
        }
        if let Some(Pair { chain, key }) = pair {
            put(&sender, WORKLOAD, encode_certificate(WORKLOAD, chain.as_bytes(), key.as_bytes()));
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
async fn serve_files(name: String, files: SecretFiles, mut lists: Lists, sender: Sender) {
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
            put(&sender, &name, secret);
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
