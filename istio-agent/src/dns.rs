//! The DNS proxy: names of the mesh are answered from the name table of istiod, and all others by the servers of
//! the system, whose responses are passed on as they are.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mesh_dns::answer::{Answer, answer};
use mesh_dns::message::{self, Code, LARGEST_LIMIT, NoQuery, Query};
use mesh_dns::table::{Place, TYPE_URL, Table};
use serving::http_server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};
use xds_client::OwnType;

use crate::metrics::DnsMetrics;

/// Queries that wait for the servers of the system, over UDP and TCP together.
const FORWARDED: usize = 512;
const CONNECTIONS: usize = 128;
/// How long a TCP client may take until its next query is complete.
const IDLE: Duration = Duration::from_secs(8);
/// Queries are small; with all options of EDNS they have some hundred bytes.
const LONGEST_QUERY: usize = 4096;
/// Pause after a failed receive or accept.
const PAUSE: Duration = Duration::from_millis(50);

/// What the proxy needs to know.
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// Each is served over UDP and TCP.
    pub addresses: Vec<SocketAddr>,
    /// The servers of the system.
    pub servers: Vec<SocketAddr>,
    /// How long one of them may take.
    pub timeout: Duration,
    /// True if all of them are asked at once.
    pub is_parallel: bool,
    pub place: Place,
}

/// The sockets of the proxy.
#[derive(Debug)]
pub struct DnsListeners {
    udp: Vec<UdpSocket>,
    tcp: Vec<TcpListener>,
}

impl DnsListeners {
    /// Must be called in a runtime.
    ///
    /// # Errors
    /// The address that cannot be bound.
    pub fn bind(config: &DnsConfig) -> Result<Self, (SocketAddr, io::Error)> {
        let mut listeners = Self { udp: Vec::new(), tcp: Vec::new() };
        for address in &config.addresses {
            let failed = |error| (*address, error);
            let socket = std::net::UdpSocket::bind(address).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            listeners.udp.push(UdpSocket::from_std(socket).map_err(failed)?);
            listeners.tcp.push(http_server::bind(*address).map_err(failed)?);
        }
        Ok(listeners)
    }
}

/// The table in use; `None` until istiod has sent one.
pub type TableReceiver = watch::Receiver<Option<Arc<Table>>>;

/// Starts to serve. Returns the subscription through which tables arrive, the table in use, and the task.
pub fn start(
    config: DnsConfig,
    listeners: DnsListeners,
    metrics: Arc<DnsMetrics>,
    random: fastrand::Rng,
) -> (OwnType, TableReceiver, JoinHandle<()>) {
    let (sender, table) = watch::channel(None);
    let place = config.place.clone();
    let accept = move |message: &Bytes| {
        let table = Table::parse(message, &place).map_err(|error| error.to_string())?;
        info!(names = table.len(), "DNS names received");
        sender.send_replace(Some(Arc::new(table)));
        Ok(())
    };
    let shared = Arc::new(Shared {
        servers: config.servers,
        timeout: config.timeout,
        is_parallel: config.is_parallel,
        table: table.clone(),
        metrics,
        random: Mutex::new(random),
        forwarded: Arc::new(Semaphore::new(FORWARDED)),
        connections: Arc::new(Semaphore::new(CONNECTIONS)),
    });
    let task = tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        for socket in listeners.udp {
            tasks.spawn(shared.clone().serve_udp(Arc::new(socket)));
        }
        for listener in listeners.tcp {
            tasks.spawn(shared.clone().serve_tcp(listener));
        }
        while tasks.join_next().await.is_some() {}
    });
    (OwnType { type_url: TYPE_URL, accept: Arc::new(accept) }, table, task)
}

struct Shared {
    servers: Vec<SocketAddr>,
    timeout: Duration,
    is_parallel: bool,
    table: TableReceiver,
    metrics: Arc<DnsMetrics>,
    random: Mutex<fastrand::Rng>,
    forwarded: Arc<Semaphore>,
    connections: Arc<Semaphore>,
}

/// How a client has sent its query, and how the servers of the system get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
}

/// What a message of a client gets.
enum Decided {
    Nothing,
    Response(Vec<u8>),
    /// The response if no server of the system answers.
    Forward(Vec<u8>),
}

impl Shared {
    fn decide(&self, message: &[u8], transport: Transport) -> Decided {
        self.metrics.requests.inc();
        let query = match Query::parse(message) {
            Ok(query) => query,
            Err(NoQuery::Ignored) => return Decided::Nothing,
            Err(NoQuery::Refused(response)) => return Decided::Response(response),
        };
        let limit = match transport {
            Transport::Udp => query.limit,
            Transport::Tcp => LARGEST_LIMIT,
        };
        let table = self.table.borrow().clone();
        match answer(&query, table.as_deref(), limit, |records| self.random().shuffle(records)) {
            Answer::Response(response) => Decided::Response(response),
            Answer::Forward => Decided::Forward(query.failure(Code::ServerFailure)),
        }
    }

    fn random(&self) -> std::sync::MutexGuard<'_, fastrand::Rng> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve_udp(self: Arc<Self>, socket: Arc<UdpSocket>) {
        let mut buffer = vec![0; LONGEST_QUERY];
        loop {
            let (length, client) = match socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => {
                    debug!(%error, "DNS query not received");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let message = buffer.get(..length).unwrap_or_default();
            let response = match self.decide(message, Transport::Udp) {
                Decided::Nothing => continue,
                Decided::Response(response) => response,
                Decided::Forward(failure) => match self.forwarded.clone().try_acquire_owned() {
                    Err(_) => failure,
                    Ok(permit) => {
                        let (shared, socket, message) = (self.clone(), socket.clone(), message.to_vec());
                        tokio::spawn(async move {
                            let response = shared.forward(message, Transport::Udp).await.unwrap_or(failure);
                            // A client that is gone needs no response.
                            let _ = socket.send_to(&response, client).await;
                            drop(permit);
                        });
                        continue;
                    }
                },
            };
            let _ = socket.send_to(&response, client).await;
        }
    }

    async fn serve_tcp(self: Arc<Self>, listener: TcpListener) {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "DNS connection not accepted");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Ok(permit) = self.connections.clone().try_acquire_owned() else { continue };
            let shared = self.clone();
            tokio::spawn(async move {
                // An error is that of the client.
                let _ = shared.serve_connection(stream).await;
                drop(permit);
            });
        }
    }

    async fn serve_connection(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let read = read_message(&mut stream, LONGEST_QUERY);
            let message = timeout(IDLE, read).await.map_err(io::Error::from)??;
            let response = match self.decide(&message, Transport::Tcp) {
                Decided::Nothing => continue,
                Decided::Response(response) => response,
                Decided::Forward(failure) => match self.forwarded.try_acquire() {
                    Err(_) => failure,
                    Ok(_permit) => self.forward(message, Transport::Tcp).await.unwrap_or(failure),
                },
            };
            timeout(IDLE, write_message(&mut stream, &response)).await.map_err(io::Error::from)??;
        }
    }

    /// Asks the servers of the system, in a random order. `None` if none answers.
    async fn forward(&self, query: Vec<u8>, transport: Transport) -> Option<Vec<u8>> {
        self.metrics.forwarded.inc();
        let begun = Instant::now();
        let answered = self.forward_to_servers(query, transport).await;
        match answered {
            Some(_) => self.metrics.seconds.observe(begun.elapsed().as_secs_f64()),
            None => {
                self.metrics.failures.inc();
            }
        }
        answered
    }

    async fn forward_to_servers(&self, query: Vec<u8>, transport: Transport) -> Option<Vec<u8>> {
        let mut servers = self.servers.clone();
        self.random().shuffle(&mut servers);
        if self.is_parallel {
            let query: Arc<[u8]> = query.into();
            let asked = servers.into_iter().map(|server| {
                let (query, limit) = (query.clone(), self.timeout);
                async move { ask(server, &query, transport, limit).await }
            });
            let mut asked: JoinSet<_> = asked.collect();
            while let Some(answered) = asked.join_next().await {
                if let Ok(Some(response)) = answered {
                    return Some(response);
                }
            }
            return None;
        }
        for server in servers {
            if let Some(response) = ask(server, &query, transport, self.timeout).await {
                return Some(response);
            }
        }
        None
    }
}

async fn ask(server: SocketAddr, query: &[u8], transport: Transport, limit: Duration) -> Option<Vec<u8>> {
    let asked = async {
        match transport {
            Transport::Udp => ask_udp(server, query).await,
            Transport::Tcp => ask_tcp(server, query).await,
        }
    };
    let failed = |error: io::Error| debug!(%server, %error, "no answer of a DNS server");
    timeout(limit, asked).await.map_err(io::Error::from).and_then(|answered| answered).map_err(failed).ok()
}

async fn ask_udp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A new port for each query makes responses of others hard to forge.
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    socket.connect(server).await?;
    socket.send(query).await?;
    loop {
        socket.readable().await?;
        // While a query waits, it needs no buffer.
        let mut buffer = vec![0; LARGEST_LIMIT];
        match socket.try_recv(&mut buffer) {
            Ok(length) => {
                let response = buffer.get(..length).unwrap_or_default();
                if message::answers(response, query) {
                    return Ok(response.to_vec());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn ask_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    write_message(&mut stream, query).await?;
    loop {
        let response = read_message(&mut stream, LARGEST_LIMIT).await?;
        if message::answers(&response, query) {
            return Ok(response);
        }
    }
}

/// Reads a message of at most `limit` bytes, with its length before it.
async fn read_message(stream: &mut TcpStream, limit: usize) -> io::Result<Vec<u8>> {
    let length = usize::from(stream.read_u16().await?);
    if length > limit {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

async fn write_message(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), message].concat()).await
}

#[cfg(test)]
mod tests;
