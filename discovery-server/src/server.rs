//! The ADS server: accepts connections, with limits on their number and rate. `connection` serves
//! one connection and `stream_task` one of its streams.

mod client_hello;
mod connection;
mod handshakes;
mod open_connections;
mod peer;
mod permits;
mod shared;
mod stream_task;

use std::sync::Arc;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use pacing::RateLimiter;
use serving::log_limiter::LogLimiter;

use crate::metrics::RefusedReason;
use handshakes::Handshakes;
use open_connections::OpenConnections;
pub use shared::{ClientView, Shared};

/// Maximum number of concurrent TLS handshakes.
const HANDSHAKES: usize = 256;
/// If fewer handshake permits than this are left, a client must send its ClientHello promptly.
const SCARCE_HANDSHAKES: usize = HANDSHAKES / 4;
/// Pause after a failed `accept`, which means that file descriptors or memory are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Length of the listen queue, in seconds of `accept_rate`. An agent abandons a handshake after 5
/// s; in a longer queue it would have disconnected before its connection is accepted, and so would
/// every client behind it.
const BACKLOG_SECONDS: u32 = 2;
/// How long streams may take to end when the server shuts down.
const CLOSE: Duration = Duration::from_secs(2);

/// Limits that are set by flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// New connections per second; the burst is twice that.
    pub accept_rate: u32,
    /// Maximum number of concurrent connections, and of concurrent streams.
    pub max_streams: usize,
    /// Maximum number of machines that one source may register, from which its number of streams follows.
    pub machines_per_source: usize,
}

/// True if the peer closed the connection while it waited in the listen queue. The kernel knows; tokio's
/// `ready` takes a new connection for readable before it has asked.
fn is_closed_by_peer(stream: &TcpStream) -> bool {
    let closed = || -> nix::Result<bool> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(stream, EpollEvent::new(EpollFlags::EPOLLRDHUP, 0))?;
        Ok(epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::ZERO)? > 0)
    };
    closed().unwrap_or_default()
}

/// Serves until `closing` is cancelled, then ends the streams. The TLS configuration is loaded for
/// each connection; without one, connections are plaintext and clients have no identity.
///
/// A client that cannot be served yet stays in the listen queue: a token and a handshake permit are
/// acquired before a connection is accepted. If all of [`ServerLimits::max_streams`] connections are in
/// use, it waits after that, since the source of a client must be known to decide about it.
pub async fn serve(
    listener: TcpListener,
    tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    shared: Arc<Shared>,
    closing: CancellationToken,
) {
    let limits = shared.limits;
    let connections = OpenConnections::new(limits.max_streams);
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    let handshakes_of_sources = Handshakes::new();
    // The bucket starts almost empty because after a restart all clients reconnect at the same
    // time.
    let interval = Duration::from_secs(1) / limits.accept_rate;
    let mut tokens = RateLimiter::with_one_token(interval, limits.accept_rate.saturating_mul(2));
    let mut has_token = false;
    let mut failures = LogLimiter::default();
    let queue = i32::try_from(limits.accept_rate.saturating_mul(BACKLOG_SECONDS)).unwrap_or(i32::MAX);
    if let Err(error) = SockRef::from(&listener).listen(queue) {
        warn!(%error, "setting the listen backlog failed");
    }
    let tracker = TaskTracker::new();
    loop {
        let accept = async {
            let handshake = handshakes.clone().acquire_owned().await.expect("never closed");
            while !has_token {
                match tokens.take(shared.now()) {
                    Ok(()) => has_token = true,
                    Err(ready) => sleep_until(shared.start + ready).await,
                }
            }
            (listener.accept().await, handshake)
        };
        let (accepted, handshake) = tokio::select! {
            accepted = accept => accepted,
            () = closing.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(times) = failures.record(Instant::now()) {
                    warn!(%error, times, "accepting a connection failed");
                }
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // A connection that is refused takes no token, so that it delays no other source.
        let tls = match &tls {
            None => None,
            Some(tls) => match handshakes_of_sources.begin(peer.ip().into()) {
                Some(handshake) => Some((tls.borrow().clone(), handshake)),
                None => {
                    shared.metrics.refused(RefusedReason::Limit);
                    continue;
                }
            },
        };
        if is_closed_by_peer(&stream) {
            // An agent that has waited too long has not failed.
            if let Some((_, handshake)) = tls {
                handshake.succeeded();
            }
            continue;
        }
        has_token = false;
        let (connections, shared, closing) = (connections.clone(), shared.clone(), closing.clone());
        tracker.spawn(connection::accept(stream, peer, tls, handshake, connections, shared, closing));
    }
    drop(listener);
    tracker.close();
    // Connections that are still open end with the process.
    let _ = timeout(CLOSE, tracker.wait()).await;
}
