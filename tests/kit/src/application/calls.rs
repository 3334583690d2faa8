//! Requests that the application sends at a steady rate, and what became of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::caller;

/// The time between two requests to one server.
const PERIOD: Duration = Duration::from_millis(50);
/// A response that takes longer counts as lost.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of failures that are shown for each server.
const SHOWN: usize = 20;

/// A server that is called, `http://HOST:PORT/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    url: String,
    /// Host and port.
    server: String,
    path: String,
}

impl Target {
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").ok_or("must begin with http://")?;
        let (server, path) = rest.split_once('/').ok_or("must contain a path")?;
        if !server.contains(':') {
            return Err("must contain a port".to_owned());
        }
        Ok(Self { url: url.to_owned(), server: server.to_owned(), path: format!("/{path}") })
    }
}

/// The results of one server.
#[derive(Default)]
struct Results {
    succeeded: u64,
    failed: u64,
    /// The time since the start in seconds, and the status or error, of the first failures.
    failures: Vec<(f64, String)>,
    /// The longest time without a success, in seconds.
    longest_gap: f64,
    last_success: Option<Instant>,
}

impl Results {
    fn record(&mut self, begin: Instant, result: Result<(), String>) {
        match result {
            Ok(()) => {
                let now = Instant::now();
                let gap = self.last_success.map_or(0.0, |last| now.duration_since(last).as_secs_f64());
                self.longest_gap = self.longest_gap.max(gap);
                self.last_success = Some(now);
                self.succeeded += 1;
            }
            Err(error) => {
                self.failed += 1;
                if self.failures.len() < SHOWN {
                    self.failures.push((begin.elapsed().as_secs_f64(), error));
                }
            }
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "succeeded": self.succeeded, "failed": self.failed, "failures": self.failures, "longestGap": self.longest_gap,
        })
    }
}

/// All targets with their results.
#[derive(Default)]
pub(super) struct Calls(Vec<(Target, Arc<Mutex<Results>>)>);

impl Calls {
    /// Calls each target until the process ends.
    pub(super) fn start(targets: &[Target]) -> Self {
        let calls = targets.iter().map(|target| {
            let results = Arc::new(Mutex::new(Results::default()));
            tokio::spawn(call_forever(target.clone(), Arc::clone(&results)));
            (target.clone(), results)
        });
        Self(calls.collect())
    }

    /// Returns the results of a URL, and begins again; `None` if it is not called.
    pub(super) fn take(&self, url: &str) -> Option<Value> {
        let (_, results) = self.0.iter().find(|(target, _)| target.url == url)?;
        let mut results = results.lock().expect("the mutex is not poisoned");
        let next = Results { last_success: results.last_success, ..Results::default() };
        Some(std::mem::replace(&mut *results, next).to_json())
    }
}

async fn call_forever(target: Target, results: Arc<Mutex<Results>>) {
    let begin = Instant::now();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (target, results) = (target.clone(), Arc::clone(&results));
        // A response that takes long delays no other request; the timeout bounds their number.
        tokio::spawn(async move {
            let result = timeout(TIMEOUT, call(&target)).await.unwrap_or_else(|_| Err("timeout".to_owned()));
            results.lock().expect("the mutex is not poisoned").record(begin, result);
        });
    }
}

async fn call(target: &Target) -> Result<(), String> {
    let mut addresses =
        tokio::net::lookup_host(&target.server).await.map_err(|error| format!("lookup: {error}"))?;
    let address = addresses.next().ok_or("lookup: no address")?;
    let headers = [("Connection", "close")];
    let answer = caller::get_host(address, &target.server, &target.path, &headers).await;
    match answer.status {
        200 if answer.complete => Ok(()),
        0 => Err("no response".to_owned()),
        status => Err(format!("{status}: {}", answer.text().trim())),
    }
}
