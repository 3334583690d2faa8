//! TLS without certificate verification, as in kubelet's prober: a probe checks whether the application
//! responds, not its identity.

use std::net::IpAddr;
use std::sync::Arc;

use probe::Reason;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// What kubelet's probers offer by ALPN.
#[derive(Clone)]
pub(crate) struct Tls {
    http: TlsConnector,
    grpc: TlsConnector,
}

impl Default for Tls {
    fn default() -> Self {
        Self { http: connector(&[H2, HTTP1]), grpc: connector(&[H2]) }
    }
}

impl Tls {
    /// Performs the handshake for an `httpGet` probe. Returns true with the stream if it speaks HTTP/2.
    pub(crate) async fn http(
        &self,
        stream: TcpStream,
        ip: IpAddr,
    ) -> Result<(Box<TlsStream<TcpStream>>, bool), Reason> {
        let stream = handshake(&self.http, stream, ip).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(H2);
        Ok((stream, is_http2))
    }

    pub(crate) async fn grpc(
        &self,
        stream: TcpStream,
        ip: IpAddr,
    ) -> Result<Box<TlsStream<TcpStream>>, Reason> {
        handshake(&self.grpc, stream, ip).await
    }
}

/// Go sends no server name for an address.
async fn handshake(
    connector: &TlsConnector,
    stream: TcpStream,
    ip: IpAddr,
) -> Result<Box<TlsStream<TcpStream>>, Reason> {
    let handshake = connector.connect(ServerName::IpAddress(ip.into()), stream);
    Ok(Box::new(Box::pin(handshake).await.map_err(|_| Reason::Tls)?))
}

/// Returns a connector for TLS 1.2 and newer that offers these protocols by ALPN, sends no client certificate and
/// verifies none.
pub fn connector(protocols: &[&[u8]]) -> TlsConnector {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(NoVerification(provider.clone()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("the provider supports both versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    // Each probe performs a full handshake.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

/// Accepts every certificate and every signature.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
