//! The application of one case. It listens on its own ports until it is dropped.

use std::collections::HashMap;
use std::io::Result;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::case::{App, Case, Connection, Listens, Step};
use super::script::{Placeholders, Recorder, run};
use super::seen::{Records, Seen};
use kit::app::tls::Tls;

/// The first port: below the ephemeral ports of the kernel, above the ports of the proxy.
const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;
/// Limit for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// A running instance of a case's application.
pub struct Application {
    pub port: u16,
    /// The ports by the names under which texts refer to them; `port` is the probed port.
    pub ports: Vec<(String, String)>,
    /// The values of all placeholders in texts: the ports, `ip` and `address`.
    pub placeholders: Placeholders,
    state: Arc<State>,
    /// The addresses on which connections are accepted.
    accepting: Vec<SocketAddr>,
    tasks: Vec<AbortHandle>,
    /// Listeners that never accept, with the connections that fill their backlogs.
    unaccepted: Vec<(TcpListener, Vec<TcpStream>)>,
}

/// State that changes while an application runs.
#[derive(Default)]
struct State {
    records: Arc<Mutex<Records>>,
    /// Number of connections so far for each port.
    counts: Mutex<HashMap<u16, usize>>,
    /// Number of connections whose script has not ended.
    open: watch::Sender<usize>,
    /// The connections of [`Application::settle`], by their source address.
    markers: Mutex<HashMap<SocketAddr, oneshot::Sender<()>>>,
}

impl Drop for Application {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Application {
    /// Starts all listeners of a case.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(case: &Case, ip: IpAddr) -> Result<Self> {
        let mut sockets = vec![("port".to_owned(), &case.app, bind(ip)?)];
        for (name, app) in &case.also {
            sockets.push((name.clone(), app, bind(ip)?));
        }
        let mut ports = Vec::new();
        for (name, _, socket) in &sockets {
            ports.push((name.clone(), socket.local_addr()?.port().to_string()));
        }
        let port = sockets[0].2.local_addr()?.port();
        let mut placeholders = ports.clone();
        placeholders.push(("ip".into(), ip.to_string()));
        placeholders.push(("address".into(), SocketAddr::new(ip, port).to_string()));
        let mut application = Self {
            port,
            ports,
            placeholders: Arc::new(placeholders),
            state: Arc::default(),
            accepting: Vec::new(),
            tasks: Vec::new(),
            unaccepted: Vec::new(),
        };
        for (_, app, socket) in sockets {
            application.listen(app, socket).await?;
        }
        Ok(application)
    }

    async fn listen(&mut self, app: &App, socket: TcpSocket) -> Result<()> {
        match app.listens {
            Listens::Not => {}
            Listens::NeverAccepts => {
                self.unaccepted.push((socket.listen(16)?, Vec::new()));
            }
            Listens::BacklogFull => {
                let listener = socket.listen(1)?;
                let waiting = fill_backlog(listener.local_addr()?, 1).await?;
                self.unaccepted.push((listener, waiting));
            }
            Listens::Accepts => {
                let listener = socket.listen(128)?;
                self.accepting.push(listener.local_addr()?);
                let acceptor = app.tls.as_ref().map(acceptor);
                let (state, placeholders) = (Arc::clone(&self.state), Arc::clone(&self.placeholders));
                let serving = serve(listener, acceptor, app.connections.clone(), state, placeholders);
                self.tasks.push(tokio::spawn(serving).abort_handle());
            }
        }
        Ok(())
    }

    /// Returns everything received so far on all ports.
    pub fn seen(&self) -> Seen {
        self.state.records.lock().expect("no holder panics").seen.clone()
    }

    /// Waits until the application has accepted all connections so far and their scripts have ended,
    /// for at most `limit`, since a script may take longer than its client waits.
    ///
    /// # Errors
    /// If the application cannot be connected to.
    pub async fn settle(&self, limit: Duration) -> Result<()> {
        let settled = async {
            for address in &self.accepting {
                self.accept_all(*address).await?;
            }
            // The sender exists as long as the application.
            let _ = self.state.open.subscribe().wait_for(|open| *open == 0).await;
            Ok(())
        };
        timeout(limit, settled).await.unwrap_or(Ok(()))
    }

    /// Connects, and waits until that connection is accepted. Connections are accepted in order, so
    /// all earlier ones have been accepted then.
    async fn accept_all(&self, address: SocketAddr) -> Result<()> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.bind(SocketAddr::new(address.ip(), 0))?;
        let (sender, accepted) = oneshot::channel();
        self.state.markers.lock().expect("no holder panics").insert(socket.local_addr()?, sender);
        let _stream = socket.connect(address).await?;
        accepted.await.map_err(std::io::Error::other)
    }

    /// Clears the recorded requests; the next connection counts as the first one.
    pub fn clear(&self) {
        self.state.records.lock().expect("no holder panics").start_round();
        self.state.counts.lock().expect("no holder panics").clear();
    }
}

/// Fills the accept queue of a listener; Linux queues one connection more than `backlog`.
async fn fill_backlog(address: SocketAddr, backlog: usize) -> Result<Vec<TcpStream>> {
    let mut waiting = Vec::new();
    while waiting.len() <= backlog {
        waiting.push(TcpStream::connect(address).await?);
    }
    // The client completes a connection a moment before the listener does.
    while accept_queue(address)? <= backlog {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(waiting)
}

/// Returns the number of connections that wait to be accepted by the listener at `address`, which
/// `/proc/net/tcp` has as the length of its receive queue.
fn accept_queue(address: SocketAddr) -> Result<usize> {
    let (table, ip) = match address.ip() {
        IpAddr::V4(ip) => ("/proc/net/tcp", format!("{:08X}", u32::from_ne_bytes(ip.octets()))),
        IpAddr::V6(ip) => {
            let octets = ip.octets();
            let words = octets.as_chunks::<4>().0.iter();
            ("/proc/net/tcp6", words.map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect())
        }
    };
    const LISTEN: &str = "0A";
    let local = format!("{ip}:{:04X}", address.port());
    let table = std::fs::read_to_string(table)?;
    let queue = table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_listener = fields.get(1) == Some(&local.as_str()) && fields.get(3) == Some(&LISTEN);
        is_listener.then(|| fields.get(4)?.split(':').nth(1))?
    });
    let length = queue.and_then(|queue| usize::from_str_radix(queue, 16).ok());
    length.ok_or_else(|| std::io::Error::other(format!("{address} is not in the table of sockets")))
}

/// Binds a socket to the next free port.
fn bind(ip: IpAddr) -> Result<TcpSocket> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let mut last = None;
    for _ in FIRST..LAST {
        let port = FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % (LAST - FIRST);
        let socket = if ip.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        match socket.bind(SocketAddr::new(ip, port)) {
            Ok(()) => return Ok(socket),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::Error::other("no free port")))
}

/// Generating keys takes time, so acceptors with equal settings are shared.
fn acceptor(tls: &Tls) -> TlsAcceptor {
    static MADE: LazyLock<Mutex<HashMap<Tls, TlsAcceptor>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().expect("no holder panics");
    made.entry(tls.clone()).or_insert_with(|| tls.acceptor()).clone()
}

async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    connections: Vec<Connection>,
    state: Arc<State>,
    placeholders: Placeholders,
) {
    let mut tasks = JoinSet::new();
    let port = listener.local_addr().map_or(0, |address| address.port());
    while let Ok((stream, peer)) = listener.accept().await {
        if let Some(marker) = state.markers.lock().expect("no holder panics").remove(&peer) {
            // The receiver may have timed out.
            let _ = marker.send(());
            continue;
        }
        while tasks.try_join_next().is_some() {}
        // Each step of a script must be sent in a separate packet.
        let _ = stream.set_nodelay(true);
        let mut recorder = Recorder::new(&state.records);
        let number = {
            let mut counts = state.counts.lock().expect("no holder panics");
            let count = counts.entry(port).or_default();
            *count += 1;
            *count - 1
        };
        let steps = steps(&connections, number);
        let (acceptor, placeholders) = (acceptor.clone(), Arc::clone(&placeholders));
        let open = Open::new(&state);
        tasks.spawn(async move {
            let _open = open;
            // Errors of a connection are caused by the client and show in its verdict.
            let _ = match acceptor {
                None => run(stream, &steps, &mut recorder, &placeholders).await,
                Some(acceptor) => match timeout(HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => run(stream, &steps, &mut recorder, &placeholders).await,
                    Ok(Err(error)) => Err(error),
                    Err(elapsed) => Err(elapsed.into()),
                },
            };
        });
    }
}

/// Counts a connection as open until it is dropped.
struct Open(Arc<State>);

impl Open {
    fn new(state: &Arc<State>) -> Self {
        state.open.send_modify(|open| *open += 1);
        Self(Arc::clone(state))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

/// Returns the script of a connection by its number, from 0.
fn steps(connections: &[Connection], number: usize) -> Vec<Step> {
    let mut first_after = 0;
    for connection in connections {
        first_after += usize::from(connection.times);
        if number < first_after {
            return connection.steps.clone();
        }
    }
    connections.last().map(|connection| connection.steps.clone()).unwrap_or_default()
}
