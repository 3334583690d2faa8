//! Certificates of a mesh: an authority, workloads with SPIFFE names, and the discovery server; as files.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use crate::authority::Authority;

/// The name that the discovery server's certificate carries.
pub const DISCOVERY_NAME: &str = "discovery.example.com";

/// Three files: of an authority, a certificate that it signed, and the key to that.
#[derive(Clone, Debug)]
pub struct Files {
    /// Whom its holder believes.
    pub authority: PathBuf,
    /// What its holder shows.
    pub certificate: PathBuf,
    /// The key to it.
    pub key: PathBuf,
}

impl Authority {
    /// Writes `<name>.pem`, `<name>-key.pem` and `<name>-ca.pem` for `san` into `folder`; what was there is replaced, the key last, each
    /// file in one step.
    ///
    /// # Panics
    /// When the folder cannot be written.
    pub fn issue(&self, folder: &Path, name: &str, san: &str) -> Files {
        let issued = self.sign(san);
        let file = |ending: &str| folder.join(format!("{name}{ending}.pem"));
        let files = Files { authority: file("-ca"), certificate: file(""), key: file("-key") };
        replace(&files.authority, &self.pem());
        replace(&files.certificate, &issued.certificate);
        replace(&files.key, &issued.key);
        files
    }

    /// The same for a workload: `spiffe://cluster.local/ns/<namespace>/sa/<account>`.
    pub fn workload(&self, folder: &Path, name: &str, namespace: &str, account: &str) -> Files {
        self.issue(folder, name, &format!("spiffe://cluster.local/ns/{namespace}/sa/{account}"))
    }
}

/// The first certificate of a PEM file, as DER.
///
/// # Panics
/// When there is none.
pub fn certificate(file: &Path) -> Vec<u8> {
    CertificateDer::from_pem_file(file).expect("a certificate").to_vec()
}

/// The certificate that the server at `address` shows to whoever has these files, as DER.
///
/// # Panics
/// When there is no handshake.
pub async fn shown(address: SocketAddr, files: &Files) -> Vec<u8> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.authority).expect("a certificate")).expect("a root");
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    let own = CertificateDer::from_pem_file(&files.certificate).expect("a certificate");
    let config = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(vec![own], key);
    let connector = TlsConnector::from(Arc::new(config.expect("a matching key")));
    let stream = TcpStream::connect(address).await.expect("somebody listens");
    let name = ServerName::try_from(DISCOVERY_NAME).expect("a name");
    let stream = connector.connect(name, stream).await.expect("a handshake");
    stream.get_ref().1.peer_certificates().expect("a certificate")[0].to_vec()
}

/// Writes a file so that a reader sees the old text or the new one, never half of it.
///
/// # Panics
/// When it cannot be written.
pub fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("a writable folder");
    std::fs::rename(&new, path).expect("a writable folder");
}
