//! Streams and attempts that fail: what is shown, logged and counted, and when the next one starts.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::*;
use crate::token::TokenFile;

/// The longest pause before an attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause before the first attempt after a stable stream.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A stream that is open for this long is stable.
const STABLE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn the_status_that_ends_a_stream_is_shown() {
    for (status, expected, is_refused) in [
        (Status::permission_denied("not yours"), "PermissionDenied: not yours", true),
        (Status::unauthenticated("no token"), "Unauthenticated: no token", true),
        (Status::invalid_argument("unknown type"), "InvalidArgument: unknown type", true),
        (Status::unavailable("restart"), "Unavailable: restart", false),
        (Status::ok(""), "the server ended the stream", false),
    ] {
        let server = Server::start(None).await;
        let mut agent = Agent::start(&server);
        let stream = server.accept().await;
        agent.status(|status| status.connected.is_some()).await;
        stream.end(status).await;
        assert_eq!(agent.failure().await, expected);
        assert!(agent.log().contains(&format!("disconnected from the discovery server reason={expected:?}")));
        let refused = "app_health_agent_discovery_connects_total{result=\"refused\"} 1";
        assert_eq!(agent.has_metric(refused), is_refused, "{expected}");
        assert!(agent.has_metric("app_health_agent_discovery_connected 0"));

        advance(LONGEST_PAUSE).await;
        let again = server.accept().await;
        agent.status(|status| status.connected.is_some()).await;
        drop(again);
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_does_not_resolve() {
    // No resolver asks for a label of more than 63 bytes.
    let config = config(Endpoint::Name("x".repeat(64), 15012));
    let mut agent = Agent::start_with(config, None);
    let failure = agent.failure().await;
    assert!(failure.starts_with("discovery.test:15012: failed to lookup address"), "{failure}");
    assert!(agent.has_metric("app_health_agent_discovery_connects_total{result=\"failed\"} 1"));
}

/// Without its token, an attempt fails before any I/O, so that time may advance by itself.
#[tokio::test(start_paused = true)]
async fn pauses_between_attempts_grow_until_a_stream_is_stable() {
    let server = Server::start(None).await;
    let token = folder("pauses").join("token");
    let file = TokenFile { name: "--discovery-token-file", path: token.clone(), is_optional: false };
    let config = DiscoveryConfig { token: Some(file), ..config(Endpoint::Ip(server.address())) };
    let mut agent = Agent::start_with(config, None);
    agent.failure().await;
    agent._frozen = None;
    let first = agent.pause().await;
    assert!(first <= FIRST_PAUSE, "{first:?}");
    let mut longest = first;
    for _ in 0..20 {
        longest = longest.max(agent.pause().await);
    }
    assert!(longest > 2 * FIRST_PAUSE && longest <= LONGEST_PAUSE, "{longest:?}");

    agent._frozen = Some(Frozen::new());
    std::fs::write(&token, "secret").expect("a writable folder");
    advance(LONGEST_PAUSE).await;
    let stream = server.accept().await;
    assert_eq!(stream.authorization, "Bearer secret");
    agent.status(|status| status.connected.is_some()).await;
    advance(STABLE).await;
    std::fs::remove_file(&token).expect("the file exists");
    stream.end(Status::unavailable("restart")).await;
    agent.failure().await;
    agent._frozen = None;
    let next = agent.pause().await;
    assert!(next <= FIRST_PAUSE, "{next:?}");
}

/// How soon a connection that carries nothing any more is replaced.
const UNNOTICED: Duration = Duration::from_secs(60);

/// Forwards connections to a server.
struct Relay {
    address: SocketAddr,
    /// False if nothing is forwarded, and nothing closed, as by a firewall that has forgotten a connection.
    forwards: watch::Sender<bool>,
}

impl Relay {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (forwards, watched) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut watched = watched.clone();
                tokio::spawn(async move {
                    let mut upstream = TcpStream::connect(server).await.expect("the server listens");
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut upstream) => {}
                        () = async { drop(watched.wait_for(|forwards| !forwards).await) } => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, forwards }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_carries_nothing_is_replaced() {
    let server = Server::start(None).await;
    let relay = Relay::start(server.address()).await;
    let mut agent = Agent::start_with(config(Endpoint::Ip(relay.address)), None);
    let _lost = server.accept().await;
    agent.status(|status| status.connected.is_some()).await;
    relay.forwards.send_replace(false);
    let begun = Instant::now();
    while agent.client.stream.borrow().connected.is_some() {
        assert!(begun.elapsed() < UNNOTICED, "{}", agent.log());
        advance(Duration::from_secs(1)).await;
    }
    relay.forwards.send_replace(true);
    advance(LONGEST_PAUSE).await;
    let _next = server.accept().await;
    agent.status(|status| status.connected.is_some()).await;
}

impl Agent {
    /// Returns the time until the next attempt has failed.
    async fn pause(&mut self) -> Duration {
        let before = Instant::now();
        self.client.stream.changed().await.expect("the task runs");
        before.elapsed()
    }
}
