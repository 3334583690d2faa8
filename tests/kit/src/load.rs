//! Many probes: each on a connection of its own, at a pace or as fast as they are answered, from an address that
//! the caller chooses; and what came of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep_until, timeout};

use crate::caller::{self, Answer};

/// No probe waits longer for its answer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// The request of kubelet's prober for `path`, byte for byte but for its version.
pub fn kubelet_request(address: SocketAddr, path: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )
    .into_bytes()
}

/// A new connection to `address` from `source`, on a port that the kernel chooses.
///
/// # Errors
/// Whatever the kernel says: refused, no port left, no such source.
pub async fn connect(source: Option<IpAddr>, address: SocketAddr) -> std::io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect(address).await };
    let socket = if source.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.bind(SocketAddr::new(source, 0))?;
    socket.connect(address).await
}

/// Sends `request` on a new connection and reads one answer; status 0 where none came.
pub async fn ask(source: Option<IpAddr>, address: SocketAddr, request: &[u8]) -> Answer {
    let exchange = async {
        let mut stream = connect(source, address).await?;
        stream.write_all(request).await?;
        read_answer(&mut stream).await
    };
    match timeout(PATIENCE, exchange).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Answer::default(),
    }
}

/// Reads one answer and nothing after it, as far as it comes.
///
/// # Errors
/// Only when there is not a byte of it.
pub async fn read_answer(stream: &mut TcpStream) -> std::io::Result<Answer> {
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

/// How much is asked, and how.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Questions in all.
    pub total: u64,
    /// Questions that may wait for their answers at the same time.
    pub at_once: u64,
    /// At most this many a second; `None`: the next one as soon as one is answered.
    pub per_second: Option<u32>,
}

impl Load {
    /// Asks question after question; `ask` gets its number, from 0.
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
    u32::try_from(number).expect("a run asks fewer than four thousand million questions")
}

/// What came of many questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many answers there were of each status; 0: no answer.
    pub statuses: BTreeMap<u16, u64>,
    /// How many answers broke off.
    pub broken: u64,
    /// The answer that took longest.
    pub slowest: Duration,
    /// From the first question to the last answer.
    pub took: Duration,
}

impl Tally {
    /// Counts an answer.
    pub fn add(&mut self, answer: &Answer, took: Duration) {
        *self.statuses.entry(answer.status).or_default() += 1;
        self.broken += u64::from(answer.status != 0 && !answer.complete);
        self.slowest = self.slowest.max(took);
    }

    /// Counts all that came of another load, which ran after this one or beside it; how long both took is the
    /// caller's to say.
    pub fn add_all(&mut self, other: Self) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.broken += other.broken;
        self.slowest = self.slowest.max(other.slowest);
    }

    /// How many answers of one status there were.
    pub fn of(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or(0)
    }

    /// How many questions there were.
    pub fn total(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Answers a second.
    pub fn rate(&self) -> f64 {
        let total = u32::try_from(self.total()).map_or(f64::INFINITY, f64::from);
        total / self.took.as_secs_f64().max(f64::EPSILON)
    }
}
