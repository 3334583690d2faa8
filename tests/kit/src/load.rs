//! Sends many probes, each on a new connection from a chosen source address, at a fixed rate
//! or as fast as they are answered, and counts the results.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep_until, timeout};

use crate::caller::{self, Answer};
use crate::wait;

/// Returns the request of kubelet's prober for `path`, byte for byte except for the version.
pub fn kubelet_request(address: SocketAddr, path: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )
    .into_bytes()
}

/// Opens a connection to `address` from `source`, on a port that the kernel chooses.
///
/// # Errors
/// The error of the kernel: refused, no port left, or no such source address.
pub async fn connect(source: Option<IpAddr>, address: SocketAddr) -> std::io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect(address).await };
    let socket = if source.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.bind(SocketAddr::new(source, 0))?;
    socket.connect(address).await
}

/// Sends `request` on a new connection and reads one response; status 0 if there is none.
pub async fn ask(source: Option<IpAddr>, address: SocketAddr, request: &[u8]) -> Answer {
    let exchange = async {
        let mut stream = connect(source, address).await?;
        stream.write_all(request).await?;
        read_answer(&mut stream).await
    };
    match timeout(wait::timeout(), exchange).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Answer::default(),
    }
}

/// Reads one response and nothing after it, as far as it is received.
///
/// # Errors
/// Only if not a single byte is received.
pub async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Answer> {
    let mut bytes = Vec::with_capacity(512);
    loop {
        let read = match stream.read_buf(&mut bytes).await {
            Err(error) if bytes.is_empty() => return Err(error),
            read => read.unwrap_or(0),
        };
        let answer = caller::parse(&bytes);
        if read == 0 || answer.complete {
            return Ok(answer);
        }
    }
}

/// Number and rate of requests.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Total number of requests.
    pub total: u64,
    /// Maximum number of requests that wait for their response at the same time.
    pub at_once: u64,
    /// Maximum number of requests per second; `None`: a new one as soon as another is answered.
    pub per_second: Option<u32>,
}

impl Load {
    /// Sends the requests; `ask` gets the number of each, from 0.
    pub async fn run<F: Future<Output = Answer>>(self, ask: impl Fn(u64) -> F) -> Tally {
        let started = Instant::now();
        let tally = RefCell::new(Tally::default());
        let (ask, shared) = (&ask, &tally);
        let askers = (0..self.at_once.min(self.total)).map(|first| async move {
            let mut number = first;
            while number < self.total {
                if let Some(per_second) = self.per_second {
                    sleep_until(started + Duration::from_secs(1) * fitting(number) / per_second).await;
                }
                let asked = Instant::now();
                let answer = ask(number).await;
                shared.borrow_mut().add(&answer, asked.elapsed());
                number += self.at_once;
            }
        });
        join_all(askers).await;
        let mut tally = tally.into_inner();
        tally.took = started.elapsed();
        tally
    }
}

fn fitting(number: u64) -> u32 {
    u32::try_from(number).expect("a run sends fewer than 2^32 requests")
}

/// The results of many requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of responses by status; 0: no response.
    pub statuses: BTreeMap<u16, u64>,
    /// Number of incomplete responses.
    pub broken: u64,
    /// The longest time until a response.
    pub slowest: Duration,
    /// The time from the first request to the last response.
    pub took: Duration,
}

impl Tally {
    pub fn add(&mut self, answer: &Answer, took: Duration) {
        *self.statuses.entry(answer.status).or_default() += 1;
        self.broken += u64::from(answer.status != 0 && !answer.complete);
        self.slowest = self.slowest.max(took);
    }

    /// Adds the results of another run. The caller sets the total duration, since the runs may have
    /// been sequential or concurrent.
    pub fn add_all(&mut self, other: Self) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.broken += other.broken;
        self.slowest = self.slowest.max(other.slowest);
    }

    /// Returns the number of responses with a status.
    pub fn of(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or(0)
    }

    /// Returns the number of requests.
    pub fn total(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Returns the number of responses per second.
    pub fn rate(&self) -> f64 {
        let total = u32::try_from(self.total()).map_or(f64::INFINITY, f64::from);
        total / self.took.as_secs_f64().max(f64::EPSILON)
    }
}
