//! Tests of strict mutual TLS as configured by `envoy-config/kubernetes/strict-mtls`: the results
//! of the kubelet's probes before and after the rewriting, and which clients reach the application.

use std::net::{IpAddr, SocketAddr};

use kit::agent;
use kit::app::grpc::GrpcApp;
use kit::app::tls::install_provider;
use kit::app::{App, answer};
use kit::authority::{Authority, Issued};
use kit::caller::tls::Caller;
use kit::caller::{self, Answer};
use kit::envoy::Version;
use kit::not_tested;
use kit::wait;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::strict_mtls_kit::{BEYOND, Injected, Network, POD, POD6};

const NAME: &str = "shop.example.com";
const SHOP: &str = "
apiVersion: v1
kind: Pod
metadata: {name: shop}
spec:
  containers:
  - name: http
    image: shop:1
    readinessProbe: {timeoutSeconds: 60, httpGet: {path: /ready, port: 8080}}
    livenessProbe: {timeoutSeconds: 60, tcpSocket: {port: 8080}}
    startupProbe: {timeoutSeconds: 60, httpGet: {path: /sick, port: 8080}}
  - name: grpc
    image: shop:1
    readinessProbe: {timeoutSeconds: 60, grpc: {port: 9000}}
    livenessProbe: {timeoutSeconds: 60, grpc: {port: 8081}}
  - name: dead
    image: shop:1
    readinessProbe: {timeoutSeconds: 60, httpGet: {path: /ready, port: 8081}}
    livenessProbe: {timeoutSeconds: 60, tcpSocket: {port: 8081}}
";
/// A response body that only the application sends.
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const SICK: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nsick";

/// Runs the test in a single-threaded runtime, so that each socket is created in the thread's
/// current network namespace.
fn by_itself(test: impl Future<Output = ()>) {
    install_provider();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

/// A client with a certificate of the authority that the Pod trusts.
struct Client {
    authority: Authority,
    issued: Issued,
}

impl Client {
    fn new() -> Self {
        let authority = Authority::new();
        let issued = authority.sign("client.example.com");
        Self { authority, issued }
    }

    async fn ask(&self, ip: IpAddr, port: u16) -> std::io::Result<Answer> {
        self.ask_with(Some(&self.issued), ip, port).await
    }

    async fn ask_with(&self, issued: Option<&Issued>, ip: IpAddr, port: u16) -> std::io::Result<Answer> {
        let identity = issued.map(|issued| (issued.certificate.as_str(), issued.key.as_str()));
        let caller = Caller { server: NAME, authority: &self.authority.pem(), identity };
        caller.get(SocketAddr::new(ip, port), "/ready").await
    }

    /// Returns whether the client gets a response from the application.
    async fn reaches(&self, ip: IpAddr, port: u16) -> bool {
        self.ask(ip, port).await.is_ok_and(|answer| answer.text() == "hello")
    }
}

#[test]
fn the_example_is_valid_for_both_versions() {
    by_itself(async {
        let injected = Injected::new("strict-valid", SHOP).await;
        injected.mount(&Authority::new(), NAME);
        for version in [Version::Newest, Version::Floor] {
            let (wanted, state) = (version.bootstrap().to_string(), injected.state_dir());
            let flags =
                ["bootstrap", "--envoy-version", &wanted, "--stats-address", "off", "--state-dir", &state];
            let ours = agent::run(&flags, &[]).await;
            assert_eq!(ours.code, Some(0), "{}", ours.stderr);
            let output = tokio::process::Command::new(version.binary())
                .args(["--mode", "validate", "--config-path"])
                .arg(injected.configuration())
                .args(["--config-yaml", &ours.stdout])
                .output()
                .await
                .expect("Envoy starts");
            assert!(output.status.success(), "{version:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    });
}

#[test]
fn a_pod_with_declared_and_with_rewritten_probes() {
    let programs = ["ip", "iptables-restore", "setpriv"];
    if !not_tested::has_root_and("strict mutual TLS in a network namespace", &programs) {
        return;
    }
    // A separate thread, because the namespaces apply to this thread only and end with it.
    let test = std::thread::spawn(|| {
        by_itself(async {
            let injected = Injected::new("strict", SHOP).await;
            let network = Network::new().await;
            network.in_pod(async { injected.capture() }).await;
            run(&network, &injected).await;
        });
    });
    test.join().expect("strict mutual TLS");
}

async fn run(network: &Network, injected: &Injected) {
    let client = Client::new();
    injected.mount(&client.authority, NAME);
    let serve = |path: &str| answer(if path == "/sick" { SICK } else { HELLO });
    let address = |address: &str| address.parse().expect("an address");
    let app = network.in_pod(App::routes(address("[::]:8080"), None, serve)).await;
    let _grpc = network.in_pod(GrpcApp::real(address("0.0.0.0:9000"))).await;
    let _own = network.in_pod(App::routes(address("0.0.0.0:15001"), None, serve)).await;
    let stranger = network.beyond(App::routes(address("0.0.0.0:8080"), None, serve)).await;
    let _sidecar = network.in_pod(async { injected.start() }).await;
    let ready = async || caller::probe(SocketAddr::new(POD, 15021), "/healthz/ready").await.status;
    let what = || format!("the sidecar is ready\n{}", injected.log());
    wait::until_or(what, async || ready().await == 200).await;

    as_declared().await;
    rewritten(injected).await;
    let connections = app.seen_at_least(OF_REWRITTEN).await.len();
    assert_eq!(connections, OF_REWRITTEN, "none of the others reached the application");
    nothing_else_in_plaintext(&client).await;
    with_a_certificate(&client, &app).await;
    // The application behind the Pod is asked directly, so that any other connection comes before.
    network.beyond(caller::probe(address("127.0.0.1:8080"), "/ready")).await;
    assert_eq!(stranger.seen_at_least(1).await.len(), 1, "no connection must leave the Pod");
    renewed(injected, &client).await;
}

/// Without rewriting, HTTP and gRPC probes always fail, and TCP probes always succeed.
async fn as_declared() {
    assert_eq!(caller::probe(SocketAddr::new(POD, 8080), "/ready").await.status, 0);
    for port in [9000, 8081] {
        let endpoint =
            Endpoint::from_shared(format!("http://{}", SocketAddr::new(POD, port))).expect("a URL");
        if let Ok(channel) = endpoint.connect().await {
            let mut health = HealthClient::new(channel);
            health
                .check(HealthCheckRequest::default())
                .await
                .expect_err("gRPC in plaintext must be rejected");
        }
    }
    TcpStream::connect(SocketAddr::new(POD, 8080)).await.expect("a TCP probe of the application succeeds");
    TcpStream::connect(SocketAddr::new(POD, 8081)).await.expect("a TCP probe of a closed port succeeds too");
}

/// Number of connections of the rewritten probes to the application's HTTP port.
const OF_REWRITTEN: usize = 3;

/// The probes as the injector has rewritten them have correct results.
async fn rewritten(injected: &Injected) {
    let verdicts = [
        ("http", "readinessProbe", 200, ""),
        ("http", "livenessProbe", 200, ""),
        ("http", "startupProbe", 503, ""),
        ("grpc", "readinessProbe", 200, ""),
        ("grpc", "livenessProbe", 502, "refused"),
        ("dead", "readinessProbe", 502, "refused"),
        ("dead", "livenessProbe", 502, "refused"),
    ];
    for (container, field, status, word) in verdicts {
        let (address, path) = injected.probe(container, field);
        let probed = caller::probe(address, &path).await;
        assert_eq!((probed.status, probed.word().as_str()), (status, word), "{container} {field}");
    }
}

/// A client without a certificate, or with one of another authority, reaches the application
/// through no port, over neither IPv4 nor IPv6.
async fn nothing_else_in_plaintext(client: &Client) {
    let other = Authority::new().sign("client.example.com");
    for port in [8080, 8081, 9000, 15000, 15001, 15004, 15006, 15090] {
        let address = SocketAddr::new(POD, port);
        assert_eq!(caller::probe(address, "/ready").await.status, 0, "{port}");
        client.ask_with(None, POD, port).await.expect_err("a client without a certificate must be rejected");
        client
            .ask_with(Some(&other), POD, port)
            .await
            .expect_err("a certificate of another authority must be rejected");
        assert_eq!(caller::probe(SocketAddr::new(POD6, port), "/ready").await.status, 0, "IPv6, {port}");
    }
    for path in [
        "/",
        "/ready",
        "/app-health/other/readyz",
        "/app-lifecycle/http/prestopz",
        "http://10.78.0.2:8080/ready",
    ] {
        let answer = caller::probe(SocketAddr::new(POD, 15020), path).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
    }
    assert_eq!(caller::probe(SocketAddr::new(POD, 15021), "/ready").await.status, 404);
}

/// A client with a certificate reaches the application's port, and nothing else in or behind the
/// Pod.
async fn with_a_certificate(client: &Client, app: &App) {
    assert!(!client.reaches(BEYOND, 8080).await, "the Pod must not forward connections");
    assert!(client.reaches(POD, 8080).await);
    let seen = app.seen();
    assert_eq!(seen.len(), OF_REWRITTEN + 1, "no client without a certificate reached the application");
    let last = seen.last().expect("a connection");
    assert_eq!(last.peer.ip().to_canonical(), kit::pod::SOURCE);
    for port in [8081, 15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090] {
        assert!(!client.reaches(POD, port).await, "{port}");
        assert!(client.ask(POD, port).await.map_or(0, |answer| answer.status) == 0, "{port}");
    }
}

/// When the Secret changes, Envoy reloads it: it accepts clients of the new authority and rejects
/// clients of the old one.
async fn renewed(injected: &Injected, client: &Client) {
    let next = Client::new();
    injected.renew(&next.authority, NAME);
    let what = || format!("Envoy reloads the Secret\n{}", injected.log());
    wait::until_or(what, async || next.reaches(POD, 8080).await).await;
    next.ask_with(Some(&client.issued), POD, 8080)
        .await
        .expect_err("a certificate of the old authority must be rejected");
}
