//! The same client over TLS, with or without a client certificate.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Answer, parse};

/// Settings of a TLS client; all certificates and keys are PEM.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The name that the server's certificate must contain.
    pub server: &'a str,
    /// The certificate authority to trust.
    pub authority: &'a str,
    /// The client certificate and its key.
    pub identity: Option<(&'a str, &'a str)>,
}

impl Caller<'_> {
    /// Returns what opens connections with these settings.
    ///
    /// # Panics
    /// If a certificate or key is not valid PEM.
    pub fn connector(self) -> TlsConnector {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(der(self.authority)).expect("an authority");
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match self.identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                config.with_client_auth_cert(vec![der(certificate)], key).expect("a matching key")
            }
        };
        TlsConnector::from(Arc::new(config))
    }

    /// Returns the server's name for a handshake.
    ///
    /// # Panics
    /// If it is not a DNS name or an address.
    pub fn server_name(self) -> ServerName<'static> {
        ServerName::try_from(self.server.to_owned()).expect("a name")
    }

    /// Sends a GET request for `path` over TLS.
    ///
    /// # Errors
    /// If the server disconnects before the end of the response.
    ///
    /// # Panics
    /// If a certificate or key is not valid PEM.
    pub async fn get(self, address: SocketAddr, path: &str) -> std::io::Result<Answer> {
        let stream = TcpStream::connect(address).await?;
        let mut stream = self.connector().connect(self.server_name(), stream).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.server);
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        Ok(parse(&bytes))
    }
}
