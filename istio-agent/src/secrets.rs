//! The secrets that Envoy asks for on the socket of the workload.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use istio_certificates::pem;
use istio_certificates::secret_name::SecretName;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};
use xds_client::secrets::{SecretMap, Secrets, encode_certificate, encode_roots};

use crate::workload_certificate::CertificateReceiver;

const WORKLOAD: &str = "default";
const ROOTS: &str = "ROOTCA";
/// How often files are read. Their content is compared, so that no change of a link or a directory is missed.
const INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of secrets from files.
const FILES: usize = 256;
/// Maximum size of a file in bytes.
const SIZE_LIMIT: u64 = 4 << 20;
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

/// Serves this certificate and its CA, and files by their names, which `folder` completes. `revoked` is a file
/// with certificate revocation lists, which need not exist. Must be called in a runtime.
pub fn secrets(certificate: CertificateReceiver, folder: PathBuf, revoked: Option<PathBuf>) -> Secrets {
    let (sender, current) = watch::channel(Arc::new(SecretMap::new()));
    let sender = Arc::new(sender);
    let lists = revocation_lists(revoked);
    tokio::spawn(serve_workload(certificate, lists.clone(), sender.clone()));
    let followed: Mutex<BTreeSet<String>> = Mutex::default();
    let request = move |name: &str| {
        let Some(parsed) = SecretName::parse(name) else { return false };
        let mut followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(parsed, SecretName::Workload | SecretName::MeshRoots) || followed.contains(name) {
            return true;
        }
        if followed.len() >= FILES {
            warn!(name, "secret not served: {FILES} secrets from files are served already");
            return false;
        }
        followed.insert(name.to_owned());
        let files =
            FileSecret { name: name.to_owned(), parsed, folder: folder.clone(), lists: lists.clone() };
        tokio::spawn(files.follow(sender.clone()));
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

/// The revocation lists as they are now; `None` if there is no file.
type Lists = watch::Receiver<Option<String>>;

/// Reads the file from time to time. One that cannot be read changes nothing, because certificates would be
/// accepted that were revoked.
fn revocation_lists(file: Option<PathBuf>) -> Lists {
    let Some(file) = file else { return watch::channel(None).1 };
    let read_lists = move || match fs::metadata(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => read(&file).map(Some),
    };
    let first = read_lists().unwrap_or_else(|error| {
        warn!(error, "certificate revocation lists not read");
        None
    });
    let (sender, lists) = watch::channel(first);
    tokio::spawn(async move {
        let mut last_error = None;
        while !sender.is_closed() {
            sleep(INTERVAL).await;
            match read_lists() {
                Ok(found) => {
                    last_error = None;
                    if sender.send_if_modified(|lists| std::mem::replace(lists, found.clone()) != found) {
                        info!(exists = found.is_some(), "certificate revocation lists changed");
                    }
                }
                Err(error) => {
                    if last_error.as_ref() != Some(&error) {
                        warn!(error, "certificate revocation lists not read, keeping the previous ones");
                    }
                    last_error = Some(error);
                }
            }
        }
    });
    lists
}

/// Serves the certificate and the CA certificates of the mesh.
async fn serve_workload(mut certificate: CertificateReceiver, mut lists: Lists, sender: Sender) {
    loop {
        if let Some(issued) = certificate.borrow_and_update().clone() {
            let roots = pem::roots([issued.roots.as_str()]);
            let revoked = lists.borrow_and_update().clone();
            put(&sender, ROOTS, encode_roots(ROOTS, roots.as_bytes(), revoked.as_deref().map(str::as_bytes)));
            put(
                &sender,
                WORKLOAD,
                encode_certificate(WORKLOAD, issued.chain.as_bytes(), issued.key.as_bytes()),
            );
        }
        tokio::select! {
            changed = certificate.changed() => if changed.is_err() { return },
            Ok(()) = lists.changed() => {}
        }
    }
}

/// A secret from files.
struct FileSecret {
    name: String,
    parsed: SecretName,
    folder: PathBuf,
    lists: Lists,
}

impl FileSecret {
    /// Reads the files from time to time. Content that cannot be used changes nothing.
    async fn follow(self, sender: Sender) {
        let (mut last, mut last_error) = (None, None);
        loop {
            let lists = self.lists.borrow().clone();
            let found = self.texts().and_then(|texts| {
                let content = (texts, lists);
                if last.as_ref() == Some(&content) {
                    return Ok(None);
                }
                let secret = self.encode(&content.0, content.1.as_deref())?;
                last = Some(content);
                Ok(Some(secret))
            });
            match found {
                Ok(None) => {}
                Ok(Some(secret)) => {
                    last_error = None;
                    info!(name = self.name, "secret read from files");
                    put(&sender, &self.name, secret);
                }
                Err(error) => {
                    if last_error.as_ref() != Some(&error) {
                        warn!(name = self.name, error, "secret not read, keeping the previous one");
                    }
                    last_error = Some(error);
                }
            }
            sleep(INTERVAL).await;
        }
    }

    /// The texts of the files: one with CA certificates, or a certificate and its key.
    fn texts(&self) -> Result<Vec<String>, String> {
        let texts = |files: &[&str]| files.iter().map(|file| read(&self.folder.join(file))).collect();
        match &self.parsed {
            SecretName::FileRoots(file) => texts(&[file]),
            SecretName::FileCertificate { certificate, key } => texts(&[certificate, key]),
            SecretName::SystemRoots => {
                let file = system_roots().ok_or("this system has no CA certificates at a known place")?;
                Ok(vec![read(&file)?])
            }
            SecretName::Workload | SecretName::MeshRoots => Err("not a secret from files".to_owned()),
        }
    }

    fn encode(&self, texts: &[String], lists: Option<&str>) -> Result<Bytes, String> {
        match texts {
            [chain, key] => {
                pem::check_pair(chain, key).map_err(|error| error.to_string())?;
                Ok(encode_certificate(&self.name, chain.as_bytes(), key.as_bytes()))
            }
            roots => {
                let valid: String = roots
                    .iter()
                    .flat_map(|text| pem::certificates(text))
                    .flat_map(|text| [text, "\n"])
                    .collect();
                if valid.is_empty() {
                    return Err("no PEM-encoded certificate".to_owned());
                }
                Ok(encode_roots(&self.name, valid.as_bytes(), lists.map(str::as_bytes)))
            }
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let found = fs::metadata(file).map_err(|error| wrong(&error))?;
    if !found.is_file() || found.len() > SIZE_LIMIT {
        return Err(wrong(&"not a regular file of at most 4 MiB"));
    }
    fs::read_to_string(file).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests;
