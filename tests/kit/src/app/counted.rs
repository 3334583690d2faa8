//! A small, fast application on a thread of its own, which counts instead of remembering: for runs of minutes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// What the application does once it has read a request.
#[derive(Clone, Debug)]
pub enum Habit {
    /// Writes these bytes and closes.
    Answer(Vec<u8>),
    /// The same after a while.
    AnswerAfter(Duration, Vec<u8>),
    /// Writes these bytes, then one byte after the other, a second apart, until the other side closes.
    Drip(Vec<u8>),
    /// Nothing, until the other side closes.
    Hang,
}

impl Habit {
    /// An answer with this status and a short body.
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

/// An application that ends when this is dropped.
pub struct CountedApp {
    /// Where it listens.
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
    /// Listens on a free port and does the same with every connection.
    ///
    /// # Panics
    /// When there is no free port or thread.
    pub fn start(ip: IpAddr, habit: Habit) -> Self {
        let listener = std::net::TcpListener::bind((ip, 0)).expect("a free port");
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
        Self { address, counts, end }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// The most connections that were open at the same time.
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
            // What goes wrong with a connection is the other side's doing, and shows in its verdict.
            let _ = answer(stream, &counts, &habit).await;
            counts.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn answer(mut stream: TcpStream, counts: &Counts, habit: &Habit) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(512);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    counts.requests.fetch_add(1, Ordering::SeqCst);
    match habit {
        Habit::Answer(bytes) => stream.write_all(bytes).await,
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

/// Whether the other side closes within this time.
async fn closed_within(stream: &mut TcpStream, time: Duration) -> bool {
    tokio::time::timeout(time, stream.read(&mut [0; 64])).await.is_ok()
}
