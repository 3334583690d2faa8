//! The ADS server: who gets in, and how fast. `connection` is one connection, `exchange` one stream of it.

mod admitted;
mod codec;
mod connection;
mod exchange;
mod hello;
mod outlet;
mod requests;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use discovery::limits::TokenBucket;

pub use shared::{ClientView, Shared};

/// Handshakes at a time.
const HANDSHAKES: usize = 256;
/// With fewer places left nobody may be slow to begin one.
const CROWDED: usize = HANDSHAKES / 4;
/// Pause after a failed accept: there are no descriptors, or no memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The listen queue holds as many as are accepted in so many seconds. An agent gives up a handshake after five: in a longer queue it would
/// have left when its turn comes, and so would everybody behind it.
const QUEUE: u32 = 2;
/// A client sends its first bytes at once; so long it is waited for them to see whether it has left since.
const FIRST_BYTES: Duration = Duration::from_millis(1);
/// What streams get to end when the server does.
const CLOSE: Duration = Duration::from_secs(2);

/// What the flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// New connections a second; twice that at once.
    pub accept_rate: u32,
    /// Connections at a time, and streams.
    pub max_streams: usize,
}

/// Has the peer hung up while it waited?
async fn is_gone(stream: &TcpStream) -> bool {
    let ready = timeout(FIRST_BYTES, stream.ready(Interest::READABLE)).await;
    matches!(ready, Ok(Ok(ready)) if ready.is_read_closed())
}

/// Serves until `closing`, then tells the streams. `tls` is looked up for each connection; without it there is none, and no identity.
///
/// Whoever cannot be served yet stays in the listen queue: tokens, handshakes and places are waited for before a connection is taken.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
    shared: Arc<Shared>,
    closing: CancellationToken,
) {
    let limits = shared.limits();
    let places = Arc::new(Semaphore::new(limits.max_streams));
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    let rate = f64::from(limits.accept_rate);
    // Nobody has waited yet at the start: whoever comes then comes back, with all others.
    let mut tokens = TokenBucket::almost_empty(rate, 2.0 * rate);
    let mut has_token = false;
    let queue = i32::try_from(limits.accept_rate.saturating_mul(QUEUE)).unwrap_or(i32::MAX);
    if let Err(error) = SockRef::from(&listener).listen(queue) {
        warn!(%error, "the listen queue keeps its length");
    }
    let tracker = TaskTracker::new();
    loop {
        let accept = async {
            let place = places.clone().acquire_owned().await.expect("never closed");
            let handshake = handshakes.clone().acquire_owned().await.expect("never closed");
            while !has_token {
                match tokens.take(shared.now()) {
                    Ok(()) => has_token = true,
                    Err(wait) => sleep(wait).await,
                }
            }
            (listener.accept().await, place, handshake)
        };
        let (accepted, place, handshake) = tokio::select! {
            accepted = accept => accepted,
            () = closing.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "cannot accept connections");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if is_gone(&stream).await {
            continue;
        }
        has_token = false;
        let tls = tls.as_ref().map(|tls| tls.load_full());
        let (shared, closing) = (shared.clone(), closing.clone());
        tracker.spawn(async move {
            connection::greet(stream, peer, tls, handshake, shared, closing).await;
            drop(place);
        });
    }
    drop(listener);
    tracker.close();
    // Who has not gone by then goes with the process.
    let _ = timeout(CLOSE, tracker.wait()).await;
}
