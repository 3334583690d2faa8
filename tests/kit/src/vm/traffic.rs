//! Sends requests to the service at a constant rate, each on a new connection, and counts the
//! responses by machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::application::MACHINE;
use crate::caller;

/// Number of responses by status and machine; the machine is empty for Envoy's own responses.
pub type ResponseCounts = BTreeMap<(u16, String), u64>;

/// A sequence of requests that ends when this is dropped.
pub struct Traffic {
    counts: Arc<Mutex<ResponseCounts>>,
    task: AbortHandle,
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Traffic {
    /// Sends a request to `listener` after each `pause`, independently of earlier responses.
    pub fn start(listener: SocketAddr, pause: Duration) -> Self {
        Self::start_host(listener, &listener.to_string(), &[], pause)
    }

    /// Like [`Traffic::start`], for this host and with these headers.
    pub fn start_host(
        listener: SocketAddr,
        host: &str,
        headers: &[(&'static str, &'static str)],
        pause: Duration,
    ) -> Self {
        let counts: Arc<Mutex<ResponseCounts>> = Arc::default();
        let headers = [&[("Connection", "close")], headers].concat();
        let requests = ask(listener, host.into(), headers.into(), pause, Arc::clone(&counts));
        let task = tokio::spawn(requests).abort_handle();
        Self { counts, task }
    }

    /// Returns the number of responses since the last call of [`Traffic::take`].
    pub fn responses(&self) -> u64 {
        self.counts.lock().expect("the mutex is not poisoned").values().sum()
    }

    /// Returns the counts since the last call.
    pub fn take(&self) -> ResponseCounts {
        std::mem::take(&mut *self.counts.lock().expect("the mutex is not poisoned"))
    }
}

async fn ask(
    listener: SocketAddr,
    host: Arc<str>,
    headers: Arc<[(&'static str, &'static str)]>,
    pause: Duration,
    counts: Arc<Mutex<ResponseCounts>>,
) {
    let mut requests = JoinSet::new();
    let mut interval = tokio::time::interval(pause);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        while requests.try_join_next().is_some() {}
        let (host, headers, counts) = (Arc::clone(&host), Arc::clone(&headers), Arc::clone(&counts));
        requests.spawn(async move {
            let answer = caller::get_host(listener, &host, "/", &headers).await;
            let machine = answer.header(MACHINE).unwrap_or_default().to_owned();
            *counts
                .lock()
                .expect("the mutex is not poisoned")
                .entry((answer.status, machine))
                .or_default() += 1;
        });
    }
}
