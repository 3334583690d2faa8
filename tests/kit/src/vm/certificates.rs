//! Certificates of a mesh as files: an authority, workloads with SPIFFE IDs, and the discovery
//! server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use crate::authority::Authority;

/// The name in the discovery server's certificate.
pub const DISCOVERY_NAME: &str = "discovery.example.com";

/// The files of one certificate: its CA certificate, the certificate, and its key.
#[derive(Clone, Debug)]
pub struct Files {
    /// The CA certificate with which the holder verifies its peers.
    pub authority: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    /// Writes `<name>.pem`, `<name>-key.pem` and `<name>-ca.pem` for `san` into `folder`. Existing
    /// files are replaced atomically, the key last.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn issue(&self, folder: &Path, name: &str, san: &str) -> Files {
        let issued = self.sign(san);
        let file = |ending: &str| folder.join(format!("{name}{ending}.pem"));
        let files = Files { authority: file("-ca"), certificate: file(""), key: file("-key") };
        replace(&files.authority, &self.pem());
        replace(&files.certificate, &issued.certificate);
        replace(&files.key, &issued.key);
        files
    }

    /// Like [`Authority::issue`], for the workload
    /// `spiffe://cluster.local/ns/<namespace>/sa/<account>`.
    pub fn workload(&self, folder: &Path, name: &str, namespace: &str, account: &str) -> Files {
        self.issue(folder, name, &format!("spiffe://cluster.local/ns/{namespace}/sa/{account}"))
    }
}

/// Returns the first certificate of a PEM file, as DER.
///
/// # Panics
/// If there is none.
pub fn certificate(file: &Path) -> Vec<u8> {
    CertificateDer::from_pem_file(file).expect("a certificate").to_vec()
}

/// Returns the certificate, in DER format, that the server at `address` presents to a client with
/// these files.
///
/// # Panics
/// If the handshake fails.
pub async fn presented_certificate(address: SocketAddr, files: &Files) -> Vec<u8> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.authority).expect("a certificate")).expect("a root");
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    let own = CertificateDer::from_pem_file(&files.certificate).expect("a certificate");
    let config = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(vec![own], key);
    let connector = TlsConnector::from(Arc::new(config.expect("a matching key")));
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let name = ServerName::try_from(DISCOVERY_NAME).expect("a name");
    let stream = connector.connect(name, stream).await.expect("a handshake");
    stream.get_ref().1.peer_certificates().expect("a certificate")[0].to_vec()
}

/// Replaces a file atomically, so that a reader never sees a part of it.
///
/// # Panics
/// If it cannot be written.
pub fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("a writable folder");
    std::fs::rename(&new, path).expect("a writable folder");
}
