//! A TLS connection to the webhook, as the API server opens it.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use kit::wait;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The name in the webhook's certificate.
const NAME: &str = "app-health-webhook.app-health-system.svc";

pub(super) type Connection = StreamOwned<ClientConnection, TcpStream>;

/// Connects and completes the TLS handshake, trusting these certificates in PEM.
pub(super) fn dial(address: SocketAddr, trusted: &str) -> io::Result<Connection> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("a CA");
    }
    let config = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let connection = ClientConnection::new(config, ServerName::try_from(NAME).expect("a name"));
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(wait::timeout()))?;
    let mut stream = StreamOwned::new(connection.map_err(io::Error::other)?, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}
