//! Certificates of a mesh: an authority, workloads with SPIFFE names, and the discovery server; as files.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The name that the discovery server's certificate carries.
pub const DISCOVERY_NAME: &str = "discovery.example.com";

/// An authority that signs for anybody.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

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

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(parameters, key).expect("an authority"))
    }

    /// Writes `<name>.pem`, `<name>-key.pem` and `<name>-ca.pem` for `san` into `folder`; what was there is replaced, the key last, each
    /// file in one step.
    ///
    /// # Panics
    /// When the folder cannot be written.
    pub fn issue(&self, folder: &Path, name: &str, san: &str) -> Files {
        let san = match san.starts_with("spiffe://") {
            true => SanType::URI(Ia5String::try_from(san).expect("ASCII")),
            false => SanType::DnsName(Ia5String::try_from(san).expect("ASCII")),
        };
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.subject_alt_names = vec![san];
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        // A subject of its own: Envoy takes a certificate that is called like its issuer for a self-signed one.
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.0).expect("a certificate");
        let file = |ending: &str| folder.join(format!("{name}{ending}.pem"));
        let files = Files { authority: file("-ca"), certificate: file(""), key: file("-key") };
        replace(&files.authority, &self.0.pem());
        replace(&files.certificate, &certificate.pem());
        replace(&files.key, &key.serialize_pem());
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
