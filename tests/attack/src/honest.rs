//! Honest clients: each sends a request, waits for the response, and sends the next one at a fixed
//! interval, as kubelet does. They run on a separate thread, so that the load of this program
//! changes their figures as little as possible.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::newcomer::Newcomer;
use crate::request::{Request, Verdict};

/// Time between two newcomers of a kind.
const NEWCOMERS: Duration = Duration::from_millis(200);

/// A client that repeats a request.
#[derive(Clone)]
pub struct HonestClient {
    /// The name of the row; several clients may share it.
    pub row: &'static str,
    pub request: Request,
    pub interval: Duration,
}

/// A request that has ended.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub row: &'static str,
    pub started: Instant,
    pub took: Duration,
    pub verdict: Verdict,
}

pub struct HonestTraffic {
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl HonestTraffic {
    /// Starts the clients.
    ///
    /// # Panics
    /// If no thread can be started.
    pub fn start(clients: Vec<HonestClient>, newcomers: Vec<Newcomer>) -> Self {
        let (exchanges, end) = (Arc::<Mutex<Vec<Exchange>>>::default(), CancellationToken::new());
        let (shared, ended) = (Arc::clone(&exchanges), end.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let run = move || {
            LocalSet::new().block_on(&runtime, async {
                let mut running = JoinSet::new();
                for client in clients {
                    let (shared, ended) = (Arc::clone(&shared), ended.clone());
                    running.spawn_local(async move {
                        repeat(client.row, client.interval, shared, ended, async || {
                            client.request.send().await
                        })
                        .await;
                    });
                }
                for newcomer in newcomers {
                    let (shared, ended) = (Arc::clone(&shared), ended.clone());
                    running.spawn_local(async move {
                        repeat(newcomer.row, NEWCOMERS, shared, ended, async || newcomer.join().await).await;
                    });
                }
                running.join_all().await;
            });
        };
        let thread = std::thread::Builder::new().name("honest".into()).spawn(run).expect("a thread");
        Self { exchanges, end, thread: Some(thread) }
    }

    /// Returns the requests that have ended since the last call.
    ///
    /// # Panics
    /// If a client has panicked.
    pub fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.exchanges.lock().expect("the mutex is not poisoned"))
    }

    /// Stops after the requests in flight, and returns the rest of the results.
    ///
    /// # Panics
    /// If a client has panicked.
    pub fn stop(mut self) -> Vec<Exchange> {
        self.end.cancel();
        self.thread.take().expect("it is stopped once").join().expect("no client panics");
        self.take()
    }
}

impl Drop for HonestTraffic {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

async fn repeat(
    row: &'static str,
    every: Duration,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    end: CancellationToken,
    exchange: impl AsyncFn() -> Verdict,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while end.run_until_cancelled(ticks.tick()).await.is_some() {
        let started = Instant::now();
        let verdict = exchange().await;
        let exchange = Exchange { row, started, took: started.elapsed(), verdict };
        exchanges.lock().expect("the mutex is not poisoned").push(exchange);
    }
}
