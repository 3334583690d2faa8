//! Applications under probe, whose behavior is data.
//!
//! A scripted [`App`] writes bytes and waits; [`grpc`] contains real and scripted gRPC health
//! servers, and [`switched`] servers whose behavior can be changed while they run.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::wait;

pub mod counted;
pub mod grpc;
pub mod switched;
pub mod tls;

/// Upper bound of a request head, in bytes.
const HEAD: usize = 1 << 20;

/// One step of an application on a connection.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reads up to the end of a request head. The steps end if the client has disconnected.
    Read,
    /// Begins again with the first step.
    Repeat,
    Write(Vec<u8>),
    /// Writes blocks of 16 KiB until the client disconnects.
    WriteForEver,
    /// Writes these bytes one at a time, with a pause before each.
    Drip(Vec<u8>, Duration),
    Wait(Duration),
    /// Waits for `notify_one`, so that the test decides when the next step follows.
    Until(Arc<Notify>),
    /// Waits until the client disconnects.
    Hang,
    /// Closes the sending side and continues to read.
    HalfClose,
    Reset,
}

/// Returns the steps that read a request, write `answer` and close the connection.
pub fn answer(answer: impl AsRef<[u8]>) -> Vec<Step> {
    vec![Step::Read, Step::Write(answer.as_ref().to_vec())]
}

/// What an application received on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub peer: SocketAddr,
    /// All bytes of the request heads.
    pub bytes: Vec<u8>,
}

impl Seen {
    pub fn request_line(&self) -> String {
        self.lines().next().unwrap_or_default()
    }

    /// Returns the header lines in the order in which they were received.
    pub fn headers(&self) -> Vec<String> {
        self.lines().skip(1).filter(|line| !line.is_empty()).collect()
    }

    /// Returns the value of a header; the case of `name` is ignored.
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
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Drop for App {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl App {
    /// Listens on a free port and performs `steps` on each connection.
    pub async fn start(ip: IpAddr, steps: Vec<Step>) -> Self {
        Self::listen(SocketAddr::new(ip, 0), None, Script::Steps(steps)).await
    }

    /// Like [`App::start`], over TLS.
    pub async fn start_tls(ip: IpAddr, acceptor: TlsAcceptor, steps: Vec<Step>) -> Self {
        Self::listen(SocketAddr::new(ip, 0), Some(acceptor), Script::Steps(steps)).await
    }

    /// Listens on `address`, reads one request from each connection, and performs the steps that
    /// `route` returns for its path. A `Read` at the beginning of these steps stands for that
    /// request.
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
        let task = tokio::spawn(serve(listener, acceptor, Arc::new(script), Arc::clone(&seen)));
        Self { address, seen, task }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns everything received so far, one entry for each connection.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no holder panics").clone()
    }

    /// Waits until there were at least `connections` connections. A client may know of a connection
    /// before the application has accepted it.
    ///
    /// # Panics
    /// If there are fewer within [`wait::timeout`].
    pub async fn seen_at_least(&self, connections: usize) -> Vec<Seen> {
        let what = || format!("{connections} connections are accepted: {:?}", self.seen());
        wait::until_or(what, async || self.seen().len() >= connections).await;
        self.seen()
    }

    /// Closes the port and returns once it refuses connections. Dropping this closes the port at some
    /// later time.
    ///
    /// # Panics
    /// If the port accepts connections after [`wait::timeout`].
    pub async fn stop(mut self) {
        self.task.abort();
        // The result says that the task was aborted.
        let _ = (&mut self.task).await;
        // A process that another test starts has a copy of the socket between fork and exec, and the
        // kernel accepts connections as long as there is one.
        let what = format!("{} is closed", self.address);
        wait::until(&what, async || TcpStream::connect(self.address).await.is_err()).await;
    }
}

/// Maps the path of a request to the steps for its connection.
type Route = dyn Fn(&str) -> Vec<Step> + Send + Sync;

/// The steps that an application performs on its connections.
enum Script {
    Steps(Vec<Step>),
    /// Steps that depend on the path of the request.
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
            if acceptor.is_some() {
                // As Go's servers do. Otherwise a response can wait 40 ms until the client's kernel
                // acknowledges the session tickets that precede it.
                let _ = stream.set_nodelay(true);
            }
            // Errors of a connection are caused by the client and show in its verdict.
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
    // Closing a socket with a linger time of 0 sends a RST.
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
    let mut next = 0;
    while let Some(step) = steps.get(next) {
        next += 1;
        match step {
            Step::Read => match read_head(&mut stream).await? {
                head if head.is_empty() => break,
                head => record(&head),
            },
            Step::Repeat => next = 0,
            Step::Write(bytes) => stream.write_all(bytes).await?,
            Step::WriteForEver => loop {
                stream.write_all(&[b'x'; 16 << 10]).await?;
            },
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    tokio::time::sleep(*pause).await;
                    stream.write_all(&[*byte]).await?;
                    stream.flush().await?;
                }
            }
            Step::Wait(time) => tokio::time::sleep(*time).await,
            Step::Until(notify) => notify.notified().await,
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

/// Reads up to the first empty line, or to the end of the stream.
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
