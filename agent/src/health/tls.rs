//! TLS that verifies nothing: a probe asks whether the application answers, not who it is. Kubelet does the same.

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

/// TLS 1.2 and newer, HTTP/2 and HTTP/1.1, no client certificate.
pub(super) fn connector() -> TlsConnector {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(Anybody(provider.clone()));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .expect("the provider has suites of both")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![H2.to_vec(), HTTP1.to_vec()];
    // Each probe is a handshake of its own.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

/// Makes the handshake. Only a DNS name is told to the server, as RFC 6066 has it.
pub(super) async fn handshake(
    connector: &TlsConnector,
    stream: TcpStream,
    host: &str,
) -> Result<TlsStream<TcpStream>, Unhealthy> {
    let name = ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| {
        Unhealthy::new(HealthReason::CannotRun, &format!("{host} cannot be named in a TLS handshake"))
    })?;
    connector.connect(name, stream).await.map_err(|error| {
        let tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
        match tls {
            Some(error) => failed(error),
            None => Unhealthy::new(HealthReason::Tls, "the connection ended during the TLS handshake"),
        }
    })
}

/// Whether HTTP/2 was agreed on.
pub(super) fn is_h2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}

/// In our words.
pub(super) fn failed(error: &Error) -> Unhealthy {
    let text = match error {
        Error::InvalidMessage(_) => "the application does not speak TLS".to_owned(),
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the application wants a client certificate, and a probe has none".to_owned()
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

/// Takes every certificate and every signature.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
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
