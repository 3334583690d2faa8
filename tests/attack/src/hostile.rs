//! Hostile clients: many connections of several addresses that occupy something. They run on a separate
//! thread, and stop at the end of an attack.

mod certificate_holder;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kit::load::read_answer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::request::Tls;
pub use certificate_holder::Holder;

/// Receive buffer of a client that reads slowly, in bytes; the kernel doubles it.
const SMALL_BUFFER: u32 = 2048;

/// Clients that all do the same.
#[derive(Clone)]
pub struct HostileClients {
    pub sources: Vec<IpAddr>,
    pub address: SocketAddr,
    /// Number of connections of each source at the same time. A connection that ends is replaced.
    pub connections: usize,
    /// Number of connections that each source opens per second.
    pub per_second: u32,
    /// The TLS client; `None`: plaintext.
    pub tls: Option<Tls>,
    /// What is sent at the beginning of a connection.
    pub bytes: Vec<u8>,
    pub then: Then,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// Waits until the server closes the connection.
    Wait,
    /// Reads one response, waits, and closes the connection.
    Close { after: Duration },
    /// Reads one response, waits, and sends the request again.
    Repeat { every: Duration },
    /// Sends these bytes again and again, and reads nothing.
    Send { bytes: Arc<[u8]>, every: Duration },
    /// Reads a byte per second.
    ReadSlowly,
    /// Acts as a client of discovery with a certificate.
    Hold(Holder),
}

#[derive(Debug, Default)]
struct Counts {
    attempts: AtomicU64,
    open: AtomicU64,
    most_open: AtomicU64,
}

/// Running clients; dropping this closes their connections.
pub struct Attack {
    counts: Arc<Counts>,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Attack {
    /// Starts the clients.
    ///
    /// # Panics
    /// If no thread can be started.
    pub fn start(clients: Vec<HostileClients>) -> Self {
        let (counts, end) = (Arc::<Counts>::default(), CancellationToken::new());
        let (shared, ended) = (Arc::clone(&counts), end.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let run = move || {
            runtime.block_on(async {
                for clients in clients {
                    let clients = Arc::new(clients);
                    for source in clients.sources.clone() {
                        tokio::spawn(open(Arc::clone(&clients), source, Arc::clone(&shared)));
                    }
                }
                ended.cancelled().await;
            });
        };
        let thread = std::thread::Builder::new().name("hostile".into()).spawn(run).expect("a thread");
        Self { counts, end, thread: Some(thread) }
    }

    /// Returns the number of connection attempts so far.
    pub fn attempts(&self) -> u64 {
        self.counts.attempts.load(Ordering::Relaxed)
    }

    /// Returns the highest number of connections that were open at the same time.
    pub fn most_open(&self) -> u64 {
        self.counts.most_open.load(Ordering::Relaxed)
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.end.cancel();
        // The thread closes all connections before it ends.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Opens connections of one source.
async fn open(clients: Arc<HostileClients>, source: IpAddr, counts: Arc<Counts>) {
    let permits = Arc::new(Semaphore::new(clients.connections));
    let mut ticks = interval(Duration::from_secs(1) / clients.per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await.expect("the semaphore is not closed");
        ticks.tick().await;
        counts.attempts.fetch_add(1, Ordering::Relaxed);
        let (clients, counts) = (Arc::clone(&clients), Arc::clone(&counts));
        tokio::spawn(async move {
            // Errors are what the server does against such clients.
            let _ = clients.connection(source, &counts).await;
            drop(permit);
        });
    }
}

/// Counts an open connection until it is dropped.
struct Open<'a>(&'a Counts);

impl<'a> Open<'a> {
    fn new(counts: &'a Counts) -> Self {
        let open = counts.open.fetch_add(1, Ordering::Relaxed) + 1;
        counts.most_open.fetch_max(open, Ordering::Relaxed);
        Self(counts)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Then {
    /// Sends blanks again and again.
    pub fn send_blanks(bytes: usize, every: Duration) -> Self {
        Self::Send { bytes: vec![b' '; bytes].into(), every }
    }
}

impl HostileClients {
    async fn connection(&self, source: IpAddr, counts: &Counts) -> std::io::Result<()> {
        let stream = self.connect(source).await?;
        let _open = Open::new(counts);
        match &self.tls {
            None => self.act(stream, source).await,
            Some(tls) => {
                let stream = tls.connector.connect(tls.server.clone(), stream).await?;
                self.act(stream, source).await
            }
        }
    }

    async fn connect(&self, source: IpAddr) -> std::io::Result<TcpStream> {
        let socket = if source.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if self.then == Then::ReadSlowly {
            socket.set_recv_buffer_size(SMALL_BUFFER)?;
        }
        socket.bind(SocketAddr::new(source, 0))?;
        socket.connect(self.address).await
    }

    async fn act(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        source: IpAddr,
    ) -> std::io::Result<()> {
        if let Then::Hold(holder) = self.then {
            return holder.act(stream, source).await.map_err(std::io::Error::other);
        }
        stream.write_all(&self.bytes).await?;
        stream.flush().await?;
        match self.then {
            Then::Wait => while stream.read(&mut [0; 1024]).await? > 0 {},
            Then::Close { after } => {
                read_answer(&mut stream).await?;
                sleep(after).await;
            }
            Then::Repeat { every } => loop {
                read_answer(&mut stream).await?;
                sleep(every).await;
                stream.write_all(&self.bytes).await?;
                stream.flush().await?;
            },
            Then::Send { ref bytes, every } => loop {
                stream.write_all(bytes).await?;
                stream.flush().await?;
                sleep(every).await;
            },
            Then::ReadSlowly => {
                while stream.read(&mut [0]).await? > 0 {
                    sleep(Duration::from_secs(1)).await;
                }
            }
            Then::Hold(_) => {}
        }
        Ok(())
    }
}
