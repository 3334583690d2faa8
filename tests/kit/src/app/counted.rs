//! A small, fast application on a separate thread that counts requests and does not record them,
//! for runs that last minutes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// What the application does after it has read a request.
#[derive(Clone, Debug)]
pub enum Habit {
    /// Writes these bytes, and closes the connection if the request says so.
    KeepAlive(Vec<u8>),
    /// Writes these bytes and closes the connection.
    Answer(Vec<u8>),
    /// Waits, then writes these bytes and closes the connection.
    AnswerAfter(Duration, Vec<u8>),
    /// Writes the first bytes, then one byte per second until the client disconnects.
    Drip(Vec<u8>),
    /// Waits until the client disconnects.
    Hang,
}

impl Habit {
    /// Returns 200 with a short body, over a connection that may be used again.
    pub fn keep_alive() -> Self {
        Self::KeepAlive(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec())
    }

    /// Returns a response with this status and a short body.
    pub fn status(status: u16) -> Self {
        Self::Answer(
            format!("HTTP/1.1 {status} Said\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                .into_bytes(),
        )
    }
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    open: AtomicU64,
    most_open: AtomicU64,
}

/// An application that stops when this is dropped.
pub struct CountedApp {
    pub address: SocketAddr,
    counts: Arc<Counts>,
    end: CancellationToken,
}

impl Drop for CountedApp {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl CountedApp {
    /// Listens on a free port and does the same on every connection.
    ///
    /// # Panics
    /// If no port can be bound or no thread can be started.
    pub fn start(ip: IpAddr, habit: Habit) -> Self {
        Self::at(SocketAddr::new(ip, 0), habit).expect("cannot bind a free port")
    }

    /// Like [`CountedApp::start`], on this address.
    ///
    /// # Errors
    /// If the port is in use, also by an application that was dropped and has not stopped yet.
    ///
    /// # Panics
    /// If no thread can be started.
    pub fn at(address: SocketAddr, habit: Habit) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true).expect("a listener can be asked not to block");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (counts, end): (Arc<Counts>, _) = (Arc::default(), CancellationToken::new());
        let (theirs, ended) = (Arc::clone(&counts), end.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::Builder::new()
            .name("application".into())
            .spawn(move || {
                runtime.block_on(async {
                    let listener = TcpListener::from_std(listener).expect("a listener");
                    ended.run_until_cancelled(serve(listener, theirs, Arc::new(habit))).await;
                });
            })
            .expect("a thread");
        Ok(Self { address, counts, end })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> u64 {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// Returns the highest number of connections that were open at the same time.
    pub fn most_open(&self) -> u64 {
        self.counts.most_open.load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, counts: Arc<Counts>, habit: Arc<Habit>) {
    while let Ok((stream, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let open = counts.open.fetch_add(1, Ordering::SeqCst) + 1;
        counts.most_open.fetch_max(open, Ordering::SeqCst);
        let (counts, habit) = (Arc::clone(&counts), Arc::clone(&habit));
        tokio::spawn(async move {
            // Errors of a connection are caused by the client and show in its verdict.
            let _ = answer(stream, &counts, &habit).await;
            counts.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn answer(mut stream: TcpStream, counts: &Counts, habit: &Habit) -> std::io::Result<()> {
    const CLOSE: &[u8] = b"connection: close";
    let mut head = Vec::with_capacity(512);
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        counts.requests.fetch_add(1, Ordering::SeqCst);
        match habit {
            Habit::KeepAlive(bytes) => stream.write_all(bytes).await?,
            habit => return end(stream, habit).await,
        }
        if head.windows(CLOSE.len()).any(|part| part.eq_ignore_ascii_case(CLOSE)) {
            return Ok(());
        }
        head.clear();
    }
}

/// Does what the habit is after the last request of a connection.
async fn end(mut stream: TcpStream, habit: &Habit) -> std::io::Result<()> {
    match habit {
        Habit::KeepAlive(bytes) | Habit::Answer(bytes) => stream.write_all(bytes).await,
        Habit::AnswerAfter(pause, bytes) => {
            tokio::time::sleep(*pause).await;
            stream.write_all(bytes).await
        }
        Habit::Drip(bytes) => {
            stream.write_all(bytes).await?;
            while !closed_within(&mut stream, Duration::from_secs(1)).await {
                stream.write_all(b"x").await?;
            }
            Ok(())
        }
        Habit::Hang => {
            while stream.read(&mut [0; 64]).await? > 0 {}
            Ok(())
        }
    }
}

/// Returns whether the client disconnects within this time.
async fn closed_within(stream: &mut TcpStream, time: Duration) -> bool {
    tokio::time::timeout(time, stream.read(&mut [0; 64])).await.is_ok()
}
