//! TLS without certificate verification: a probe checks whether the application responds, not its
//! identity. Kubelet does the same.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use workload_health::{HealthReason, Unhealthy};

const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Creates a connector for TLS 1.2 and newer that offers HTTP/2 and HTTP/1.1 and sends no client
/// certificate.
pub(super) fn connector() -> TlsConnector {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(NoVerification(provider.clone()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("the provider supports both versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![H2.to_vec(), HTTP1.to_vec()];
    // Each probe performs a full handshake.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

/// Performs the handshake. SNI is sent only if `host` is a DNS name (RFC 6066).
pub(super) async fn handshake(
    connector: &TlsConnector,
    stream: TcpStream,
    host: &str,
) -> Result<TlsStream<TcpStream>, Unhealthy> {
    let name = ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| {
        Unhealthy::new(HealthReason::CannotRun, &format!("{host} is not a valid TLS server name"))
    })?;
    connector.connect(name, stream).await.map_err(|error| {
        let tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
        match tls {
            Some(error) => to_unhealthy(error),
            None => Unhealthy::new(HealthReason::Tls, "the connection closed during the TLS handshake"),
        }
    })
}

/// Returns true if ALPN selected HTTP/2.
pub(super) fn is_h2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}

/// Converts a TLS error to a probe failure.
pub(super) fn to_unhealthy(error: &Error) -> Unhealthy {
    let text = match error {
        Error::InvalidMessage(_) => "the application does not speak TLS".to_owned(),
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the application requires a client certificate, and probes do not send one".to_owned()
        }
        Error::AlertReceived(alert) => {
            format!("TLS handshake failed: the application sent the alert {alert:?}")
        }
        Error::PeerIncompatible(why) => format!("TLS handshake failed: {why:?}"),
        Error::PeerMisbehaved(why) => format!("TLS handshake failed: {why:?}"),
        _ => "TLS handshake failed".to_owned(),
    };
    Unhealthy::new(HealthReason::Tls, &text)
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
