//! Runs the example with strict mutual TLS: a client without a certificate gets no response, and
//! the probes of kubelet succeed.

use std::net::{IpAddr, SocketAddr};

use kit::app::tls::{self, Identity};
use kit::app::{App, answer};
use kit::caller::tls::Caller;
use kit::caller::{self, Answer};
use kit::envoy::{self, Envoy, Version};
use kit::example;
use kit::net;
use kit::pod;
use tokio::net::TcpStream;

const NAME: &str = "app.example.com";

/// The running example, and the identity that its listener trusts.
struct Running {
    ip: IpAddr,
    identity: Identity,
    envoy: Envoy,
}

impl Running {
    async fn start(name: &str) -> (Self, App) {
        tls::install_provider();
        let ip = net::loopback();
        let folder = envoy::folder(name);
        let identity = Identity::new(NAME);
        example::certificates(&folder, &identity);
        let config = example::runnable(&example::text("strict-mtls/envoy.yaml"), ip, &folder);
        let envoy = Envoy::start(Version::Newest, folder, &config, 1).await;
        let hello = |_: &str| answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        let app = App::routes(SocketAddr::new(ip, 8080), None, hello).await;
        (Self { ip, identity, envoy }, app)
    }

    fn traffic(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 8443)
    }

    async fn probe(&self, kind: &str) -> Answer {
        caller::probe(SocketAddr::new(self.ip, 15020), &format!("/app-health/app/{kind}")).await
    }

    /// Sends a request over TLS to the application's listener, with this client certificate or
    /// none.
    async fn ask(&self, certificate: Option<&Identity>) -> std::io::Result<Answer> {
        let identity = certificate.map(|of| (of.certificate.as_str(), of.key.as_str()));
        let caller = Caller { server: NAME, authority: &self.identity.authority, identity };
        caller.get(self.traffic(), "/").await
    }
}

#[tokio::test]
async fn a_plaintext_probe_fails_there_and_succeeds_through_the_filter() {
    let (running, app) = Running::start("mtls").await;
    assert_eq!(caller::probe(running.traffic(), "/ready").await.status, 0, "there must be no HTTP response");
    running.ask(None).await.expect_err("the handshake must fail without a certificate");
    let stranger = Identity::new(NAME);
    running.ask(Some(&stranger)).await.expect_err("a certificate of another authority is rejected");

    let ours = running.ask(Some(&running.identity)).await.expect("a client with a certificate is accepted");
    assert_eq!((ours.status, ours.text().as_str()), (200, "hello"));
    assert_eq!(app.seen().len(), 1, "none of the others reached the application");

    for kind in ["readyz", "livez"] {
        let probed = running.probe(kind).await;
        assert_eq!((probed.status, probed.text().as_str()), (200, ""), "{kind}");
    }
    let seen = app.seen_at_least(3).await;
    let probe = seen
        .iter()
        .find(|seen| seen.request_line() == "GET /ready HTTP/1.1")
        .expect("the application received the readiness probe");
    assert_eq!(probe.peer.ip(), pod::SOURCE);
    running.envoy.stop().await;
}

/// Envoy accepts each connection on the captured port even if the application is down, so a
/// `tcpSocket` probe of that port proves nothing. The filter connects to the application itself.
#[tokio::test]
async fn a_tcp_probe_of_a_captured_port_succeeds_without_an_application() {
    let (running, app) = Running::start("mtls-tcp").await;
    assert_eq!(running.probe("livez").await.status, 200);
    app.stop().await;
    TcpStream::connect(running.traffic()).await.expect("the captured port still accepts connections");
    for kind in ["livez", "readyz"] {
        let probed = running.probe(kind).await;
        assert_eq!((probed.status, probed.word().as_str()), (502, "refused"), "{kind}");
    }
    running.envoy.stop().await;
}
