//! The application under probe: what it does with a connection is data.
//!
//! A scripted [`App`] answers with bytes and pauses; [`grpc`] holds real and scripted gRPC health servers,
//! [`switched`] servers that are told how to behave.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

pub mod counted;
pub mod grpc;
pub mod switched;
pub mod tls;

/// A head longer than this is not one, in bytes.
const HEAD: usize = 1 << 20;

/// One thing that an application does with a connection.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reads to the end of a request head.
    Read,
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes a block of 16 KiB again and again, until the other side has enough.
    WriteForEver,
    /// Writes these bytes one by one, with a pause before each.
    Drip(Vec<u8>, Duration),
    /// Does nothing for a while.
    Wait(Duration),
    /// Does nothing until the other side closes.
    Hang,
    /// Closes its sending side and goes on reading.
    HalfClose,
    /// Sends a RST instead of a FIN.
    Reset,
}

/// Reads a request, then writes `answer`, then closes.
pub fn answer(answer: impl AsRef<[u8]>) -> Vec<Step> {
    vec![Step::Read, Step::Write(answer.as_ref().to_vec())]
}

/// What an application saw of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Who connected.
    pub peer: SocketAddr,
    /// All bytes of request heads.
    pub bytes: Vec<u8>,
}

impl Seen {
    /// The request line.
    pub fn request_line(&self) -> String {
        self.lines().next().unwrap_or_default()
    }

    /// The header lines, in the order in which they came.
    pub fn headers(&self) -> Vec<String> {
        self.lines().skip(1).filter(|line| !line.is_empty()).collect()
    }

    /// The value of one header, whatever its case.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers().iter().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.bytes
            .split(|byte| *byte == b'\n')
            .map(|line| String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
    }
}

/// An application that listens until it is dropped.
pub struct App {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: AbortHandle,
}

impl Drop for App {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl App {
    /// Listens on a free port and does `steps` with each connection.
    pub async fn start(ip: IpAddr, steps: Vec<Step>) -> Self {
        Self::listen(SocketAddr::new(ip, 0), None, Script::Steps(steps)).await
    }

    /// The same over TLS.
    pub async fn start_tls(ip: IpAddr, acceptor: TlsAcceptor, steps: Vec<Step>) -> Self {
        Self::listen(SocketAddr::new(ip, 0), Some(acceptor), Script::Steps(steps)).await
    }

    /// Listens on `address`; reads a request, and what it does then depends on the path asked for. A `Read` at the
    /// beginning of a route is that request.
    pub async fn routes(
        address: SocketAddr,
        acceptor: Option<TlsAcceptor>,
        route: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(address, acceptor, Script::Routes(Box::new(route))).await
    }

    async fn listen(address: SocketAddr, acceptor: Option<TlsAcceptor>, script: Script) -> Self {
        let listener = TcpListener::bind(address).await.expect("the application's port is free");
        let address = listener.local_addr().expect("a bound listener has an address");
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let task =
            tokio::spawn(serve(listener, acceptor, Arc::new(script), Arc::clone(&seen))).abort_handle();
        Self { address, seen, task }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every connection so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no holder panics").clone()
    }

    /// Waits until there were so many connections: the other side may know of one before the application does.
    ///
    /// # Panics
    /// After five seconds.
    pub async fn seen_at_least(&self, connections: usize) -> Vec<Seen> {
        for _ in 0..500 {
            if self.seen().len() >= connections {
                return self.seen();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{connections} connections, not {:?}", self.seen());
    }
}

/// From the path of a request to what is done with its connection.
type Route = dyn Fn(&str) -> Vec<Step> + Send + Sync;

/// What is done with a connection.
enum Script {
    /// Always the same.
    Steps(Vec<Step>),
    /// After a request was read: what its path says.
    Routes(Box<Route>),
}

async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, peer)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let index = {
            let mut seen = seen.lock().expect("no holder panics");
            seen.push(Seen { peer, bytes: Vec::new() });
            seen.len() - 1
        };
        let (acceptor, script, seen) = (acceptor.clone(), Arc::clone(&script), Arc::clone(&seen));
        connections.spawn(async move {
            let record = move |bytes: &[u8]| {
                seen.lock().expect("no holder panics")[index].bytes.extend_from_slice(bytes);
            };
            // What goes wrong with a connection is the other side's doing, and shows in its verdict.
            let _ = match acceptor {
                None => play(stream, &script, record, reset_tcp).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => {
                        play(stream, &script, record, |stream| reset_tcp(stream.into_inner().0)).await
                    }
                    Err(error) => Err(error),
                },
            };
        });
    }
}

fn reset_tcp(stream: TcpStream) {
    // Closing with unsent linger time 0 sends a RST.
    let _ = stream.set_zero_linger();
}

async fn play<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: &Script,
    record: impl Fn(&[u8]),
    reset: impl Fn(S),
) -> std::io::Result<()> {
    let steps = match script {
        Script::Steps(steps) => steps.clone(),
        Script::Routes(route) => {
            let head = read_head(&mut stream).await?;
            record(&head);
            let head = String::from_utf8_lossy(&head).into_owned();
            let target = head.split(' ').nth(1).unwrap_or_default();
            let mut steps = route(target.split('?').next().unwrap_or_default());
            if matches!(steps.first(), Some(Step::Read)) {
                steps.remove(0);
            }
            steps
        }
    };
    for step in steps {
        match step {
            Step::Read => record(&read_head(&mut stream).await?),
            Step::Write(bytes) => stream.write_all(&bytes).await?,
            Step::WriteForEver => loop {
                stream.write_all(&[b'x'; 16 << 10]).await?;
            },
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    tokio::time::sleep(pause).await;
                    stream.write_all(&[byte]).await?;
                    stream.flush().await?;
                }
            }
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Hang => while stream.read(&mut [0; 1024]).await? > 0 {},
            Step::HalfClose => stream.shutdown().await?,
            Step::Reset => {
                reset(stream);
                return Ok(());
            }
        }
        stream.flush().await?;
    }
    stream.shutdown().await
}

/// What comes up to the first blank line, or to the end.
pub async fn read_head<S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD {
        let mut byte = [0];
        if stream.read(&mut byte).await? == 0 {
            break;
        }
        head.push(byte[0]);
    }
    Ok(head)
}
