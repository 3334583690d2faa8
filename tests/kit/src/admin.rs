//! A scripted Envoy admin port whose behavior can be changed at any time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::net;

/// Length of the response body of [`Mood::Floods`], in bytes.
const FLOOD: usize = 20_000_000;
/// Pause between two bytes of [`Mood::Drips`].
const DRIP: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Responds like an Envoy that is live and has a static configuration.
    Serves,
    /// Responds like an Envoy whose workers have not started.
    Starts,
    /// Accepts the request and sends no response.
    Hangs,
    /// Sends a byte at a time and never completes the response.
    Drips,
    /// Responds to every request with 20 MB.
    Floods,
}

/// An admin port that stops listening on drop.
pub struct ScriptedAdmin {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: AbortOnDropHandle<()>,
}

struct Shared {
    mood: Mutex<Mood>,
    metrics: String,
    started_told: Mutex<Option<Instant>>,
    metrics_queries: AtomicUsize,
}

impl ScriptedAdmin {
    /// Listens on a free loopback port; `/stats/prometheus` responds with `metrics`.
    ///
    /// # Panics
    /// If no port can be bound.
    pub async fn start(mood: Mood, metrics: String) -> Self {
        let listener = TcpListener::bind((net::loopback(), 0)).await.expect("cannot bind a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            mood: Mutex::new(mood),
            metrics,
            started_told: Mutex::default(),
            metrics_queries: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, _accepting: AbortOnDropHandle::new(accepting) }
    }

    pub fn set(&self, mood: Mood) {
        *self.shared.mood.lock().expect("the mutex is not poisoned") = mood;
    }

    /// Returns how many requests for `/stats/prometheus` it has received.
    pub fn metrics_queries(&self) -> usize {
        self.shared.metrics_queries.load(Ordering::Relaxed)
    }

    /// Returns when the port last began to report started workers, if it did so since the last
    /// call.
    pub fn take_started(&self) -> Option<Instant> {
        self.shared.started_told.lock().expect("the mutex is not poisoned").take()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        // A client may disconnect before the end of the response.
        tokio::spawn(async move { answer(stream, &shared).await });
    }
}

async fn answer(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    if path.starts_with("/stats/prometheus") {
        shared.metrics_queries.fetch_add(1, Ordering::Relaxed);
    }
    let mood = *shared.mood.lock().expect("the mutex is not poisoned");
    match mood {
        Mood::Serves | Mood::Starts => say(&mut stream, path, mood, shared).await,
        Mood::Hangs => stream.read(&mut [0]).await.map(|_| ()),
        Mood::Drips => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n").await?;
            loop {
                stream.write_all(b"L").await?;
                sleep(DRIP).await;
            }
        }
        Mood::Floods => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {FLOOD}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&vec![b'L'; FLOOD]).await
        }
    }
}

async fn say(stream: &mut TcpStream, path: &str, mood: Mood, shared: &Shared) -> std::io::Result<()> {
    let workers = u8::from(mood == Mood::Serves);
    let stats = format!("listener_manager.workers_started: {workers}\n");
    let (status, body) = match path.split('?').next().unwrap_or_default() {
        "/ready" => ("200 OK", "LIVE\n"),
        "/stats" => {
            if mood == Mood::Serves {
                *shared.started_told.lock().expect("the mutex is not poisoned") = Some(Instant::now());
            }
            ("200 OK", stats.as_str())
        }
        "/stats/prometheus" => ("200 OK", shared.metrics.as_str()),
        "/server_info" => {
            ("200 OK", r#"{"version": "0/1.40.0/Clean", "state": "LIVE", "uptime_current_epoch": "5s"}"#)
        }
        "/drain_listeners" => ("200 OK", "OK\n"),
        _ => ("404 Not Found", ""),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}
