//! Requests to the service at an even pace, each on a connection of its own, and who answered them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use super::application::MACHINE;
use crate::caller;

/// How many answers of which kind: the status, and the machine that gave it; empty for Envoy's own.
pub type Tally = BTreeMap<(u16, String), u64>;

/// A stream of requests that ends when this is dropped.
pub struct Traffic {
    tally: Arc<Mutex<Tally>>,
    task: AbortHandle,
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Traffic {
    /// Asks `listener` once in each `pause`, whatever became of the requests before.
    pub fn start(listener: SocketAddr, pause: Duration) -> Self {
        let tally: Arc<Mutex<Tally>> = Arc::default();
        let task = tokio::spawn(ask(listener, pause, Arc::clone(&tally))).abort_handle();
        Self { tally, task }
    }

    /// What was answered since the last call.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.tally.lock().expect("no holder panics"))
    }
}

async fn ask(listener: SocketAddr, pause: Duration, tally: Arc<Mutex<Tally>>) {
    let mut requests = JoinSet::new();
    let mut interval = tokio::time::interval(pause);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        while requests.try_join_next().is_some() {}
        let tally = Arc::clone(&tally);
        requests.spawn(async move {
            let answer = caller::get(listener, "/", &[("Connection", "close")]).await;
            let machine = answer.header(MACHINE).unwrap_or_default().to_owned();
            *tally.lock().expect("no holder panics").entry((answer.status, machine)).or_default() += 1;
        });
    }
}
