//! TLS without certificate verification: a probe checks whether the application responds, not its
//! identity. Kubelet does the same.

use prober::connected::Stream;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, Error};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use workload_health::{HealthReason, Unhealthy};

const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Creates a connector that offers HTTP/2 and HTTP/1.1.
pub(super) fn connector() -> TlsConnector {
    prober::unverified_tls(&[H2, HTTP1])
}

/// Performs the handshake, and returns true with the stream if ALPN selected HTTP/2. SNI is sent only if `host`
/// is a DNS name (RFC 6066).
pub(super) async fn handshake(
    connector: &TlsConnector,
    stream: TcpStream,
    host: &str,
) -> Result<(Stream, bool), Unhealthy> {
    let name = ServerName::try_from(host.trim_end_matches('.').to_owned()).map_err(|_| {
        Unhealthy::new(HealthReason::CannotRun, &format!("{host} is not a valid TLS server name"))
    })?;
    let stream = connector.connect(name, stream).await.map_err(|error| {
        let tls = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
        match tls {
            Some(error) => to_unhealthy(error),
            None => Unhealthy::new(HealthReason::Tls, "the connection closed during the TLS handshake"),
        }
    })?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(H2);
    Ok((Stream::Tls(Box::new(stream)), is_http2))
}

/// Returns the failure of a connection that TLS has ended after the handshake; `None` if it has not. With TLS
/// 1.3 the alert about a missing client certificate arrives there.
pub(super) fn failure(stream: &mut Stream) -> Option<Unhealthy> {
    let Stream::Tls(stream) = stream else { return None };
    // A connection that has failed returns its error again.
    stream.get_mut().1.process_new_packets().err().as_ref().map(to_unhealthy)
}

/// Converts a TLS error to a probe failure.
fn to_unhealthy(error: &Error) -> Unhealthy {
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
