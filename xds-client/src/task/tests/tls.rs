//! TLS with certificates of a CA.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::tls::TlsFiles;

type Ca = CertifiedIssuer<'static, KeyPair>;

fn ca() -> Ca {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Returns an acceptor with a certificate for this name.
fn acceptor(ca: &Ca, name: &str) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, ca).unwrap();
    let config = ServerConfig::builder_with_provider(default_provider().into());
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = key.serialize_der().try_into().unwrap();
    let mut config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test(start_paused = true)]
async fn only_a_server_with_a_certificate_of_the_ca_and_the_name_gets_a_stream() {
    let (trusted, unknown) = (ca(), ca());
    for (name, issuer, certified, expected) in [
        ("right", &trusted, "localhost", None),
        ("issuer", &unknown, "localhost", Some("TLS handshake: invalid peer certificate: ")),
        ("name", &trusted, "other.test", Some("TLS handshake: invalid peer certificate: ")),
    ] {
        let server = Server::start(Some(acceptor(issuer, certified))).await;
        let file = folder(&format!("tls-{name}")).join("ca.pem");
        std::fs::write(&file, trusted.pem()).expect("a writable folder");
        let tls = Some(TlsFiles { names: TlsFiles::FLAGS, ca: file, client: None });
        let mut agent =
            Agent::start_with(DiscoveryConfig { tls, ..config(Endpoint::Ip(server.address())) }, None);
        match expected {
            None => assert_eq!(server.accept().await.request().await.type_url, xds::type_url::ENDPOINT),
            Some(expected) => {
                assert!(!server.handshake().await, "{name}");
                let failure = agent.failure().await;
                assert!(failure.contains(expected), "{name}: {failure}");
            }
        }
    }
}
