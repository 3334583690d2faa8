//! An Envoy on the socket, and a control plane that ends streams with health reports.

use hyper::Request as HttpRequest;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use readiness::Observation;
use serving::grpc::MessageBody;
use tokio::net::UnixStream;
use tokio_util::task::AbortOnDropHandle;
use xds::Response;
use xds::type_url::{CLUSTER, HEALTH_INFORMATION, LISTENER};

use super::*;

/// The longest pause before an attempt for an Envoy.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After a first refusal, reports wait this long after the first request.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// A stream that is open for this long is stable.
const STABLE: Duration = Duration::from_secs(5);

/// A stream on the socket.
struct Envoy {
    requests: mpsc::Sender<Result<Bytes, Status>>,
    responses: Messages<Incoming>,
    _connection: AbortOnDropHandle<()>,
}

impl Envoy {
    async fn open(proxy: &ProxyConfig) -> Self {
        let stream = UnixStream::connect(&proxy.sockets[0]).await.expect("the socket exists");
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.expect("HTTP/2");
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // Fails when the agent closes the connection.
            let _ = connection.await;
        }));
        let (requests, queue) = mpsc::channel(8);
        let body = MessageBody::of_request(queue, |message| grpc::parts(message, Bytes::new()));
        let request = HttpRequest::post(format!("http://agent{}", Variant::Sotw.path())).body(body).unwrap();
        let response = sender.send_request(request).await.expect("a response");
        let responses = Messages::new(response.into_body(), 128 << 20);
        Self { requests, responses, _connection: connection }
    }

    async fn send(&self, request: Request) {
        self.requests.send(Ok(request.encode(Variant::Sotw))).await.expect("the stream is open");
    }
}

/// Starts an agent, and opens a stream on its socket, which requests listeners.
async fn start(name: &str, server: &Server) -> (Agent, Envoy) {
    let state_dir = folder(name);
    let sockets = vec![state_dir.join("xds.sock")];
    let proxy = ProxyConfig { state_dir, max_age: None, sockets };
    let agent = Agent::start_with(config(Endpoint::Ip(server.address())), Some(proxy.clone()));
    let envoy = Envoy::open(&proxy).await;
    let node = Node { id: "envoy".to_owned(), ..Node::default() }.encode_identity();
    envoy.send(Request { node: Some(node), type_url: LISTENER.to_owned(), ..Request::default() }).await;
    (agent, envoy)
}

/// Accepts a stream of the agent, and reads the request of Envoy.
async fn accept(server: &Server) -> Stream {
    let mut stream = server.accept().await;
    let first = stream.request().await;
    let node = node(&first);
    assert_eq!(
        (&*first.type_url, &*node.id),
        (LISTENER, "sidecar~10.0.0.7"),
        "Envoy's node, with the agent's ID"
    );
    stream
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_reports_twice_serves_envoy_without_them() {
    let server = Server::start(None).await;
    let (mut agent, mut envoy) = start("refused", &server).await;
    // Unlike the absence of a probe, a drain is a state that Istio's protocol can report.
    agent.state.apply(Observation::Draining);
    for pause in [Duration::ZERO, RETRY_AFTER] {
        let mut stream = accept(&server).await;
        advance(pause).await;
        assert_eq!(stream.request().await.type_url, HEALTH_INFORMATION);
        stream.end(Status::invalid_argument("unknown type")).await;
        assert_eq!(agent.failure().await, "InvalidArgument: unknown type");
        advance(LONGEST_PAUSE).await;
    }
    let log = agent.log();
    assert!(log.contains("the discovery server ends xDS streams that carry health reports"), "{log}");
    let mut stream = accept(&server).await;
    advance(RETRY_AFTER).await;
    stream.send(LISTENER, "v1", &[]).await;
    let response = Response::parse(&envoy.responses.next().await.unwrap(), Variant::Sotw).unwrap();
    let (version, nonce) = (response.version, response.nonce);
    envoy.send(Request { type_url: response.type_url, version, nonce, ..Request::default() }).await;
    let next = stream.request().await;
    assert_eq!((&*next.type_url, &*next.version, &*next.nonce), (LISTENER, "v1", "v1"), "no report");
}

/// The configuration of a big mesh, as istiod sends it without deltas, with the limit of the agent in an Istio mesh.
#[tokio::test(start_paused = true)]
async fn a_response_of_64_mib_reaches_envoy() {
    const COUNT: usize = 64;
    let server = Server::start(None).await;
    let state_dir = folder("big");
    let proxy = ProxyConfig { sockets: vec![state_dir.join("xds.sock")], state_dir, max_age: None };
    let config = DiscoveryConfig { response_limit: 512 << 20, ..config(Endpoint::Ip(server.address())) };
    let _agent = Agent::start_with(config, Some(proxy.clone()));
    let mut envoy = Envoy::open(&proxy).await;
    let node = Node { id: "envoy".to_owned(), ..Node::default() }.encode_identity();
    envoy.send(Request { node: Some(node), type_url: CLUSTER.to_owned(), ..Request::default() }).await;
    let mut stream = server.accept().await;
    assert_eq!(stream.request().await.type_url, CLUSTER);
    let resources: Vec<Bytes> = (0..COUNT).map(cluster_of_1_mib).collect();
    stream.send(CLUSTER, "v1", &resources).await;
    let response = Response::parse(&envoy.responses.next().await.unwrap(), Variant::Sotw).unwrap();
    let received: Vec<&Bytes> = response.resources.iter().map(|resource| &resource.any).collect();
    assert!(received.iter().copied().eq(&resources), "{} resources", received.len());
    let (version, nonce) = (response.version, response.nonce);
    envoy.send(Request { type_url: CLUSTER.to_owned(), version, nonce, ..Request::default() }).await;
    assert_eq!(stream.request().await.version, "v1", "Envoy's acknowledgement");
}

fn cluster_of_1_mib(index: usize) -> Bytes {
    let mut cluster = bytes::BytesMut::new();
    xds::put_bytes(&mut cluster, 1, format!("cluster-{index}").as_bytes());
    xds::put_bytes(&mut cluster, 28, &vec![b'a'; 1 << 20]);
    xds::any(CLUSTER, &cluster)
}

#[tokio::test(start_paused = true)]
async fn a_malformed_response_ends_the_upstream_stream_and_is_logged_once() {
    const REASON: &str = "the control plane sent a malformed response";
    let garbage = Bytes::from_static(&[0xff; 8]);
    let server = Server::start(None).await;
    let (mut agent, mut envoy) = start("malformed", &server).await;
    for _ in 0..3 {
        let stream = accept(&server).await;
        agent.status(|status| status.connected.is_some()).await;
        stream.send_bytes(garbage.clone()).await;
        stream.closed().await;
        assert_eq!(agent.failure().await, REASON);
        assert_eq!(agent.log().matches(REASON).count(), 1, "{}", agent.log());
        advance(LONGEST_PAUSE).await;
    }
    let stream = accept(&server).await;
    stream.send(LISTENER, "v1", &[]).await;
    envoy.responses.next().await.expect("a response");
    advance(STABLE).await;
    stream.send_bytes(garbage).await;
    stream.closed().await;
    agent.failure().await;
    assert_eq!(agent.log().matches(REASON).count(), 2, "after a stable stream, it is news: {}", agent.log());
}
