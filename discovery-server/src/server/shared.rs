//! State that all connections share: registry, limits, metrics, and connected clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pacing::source::Source;
use serde::Serialize;
use serving::grpc::{Flow, IncompleteLimits};
use serving::log_limiter::LogLimiter;
use serving::shared_pool::SharedPool;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::warn;

use super::ServerLimits;
use crate::metrics::Metrics;
use crate::registry::{Handle, events};
use discovery::entries::StreamId;
use discovery::limits::Admission;
use discovery::log_budget::LogBudget;
use discovery::stream::SubscriptionView;

/// Bytes of all messages that are received only in part. At this limit, the streams of the source that has
/// most of them end.
const INCOMPLETE_BYTES: usize = 8 << 20;
/// The time from the first byte of a message to its last, and from the beginning of a stream to its first
/// message.
pub(super) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// For how long readiness shows that the limit of connections was reached.
const SHOWN: Duration = Duration::from_secs(60);

/// One subscription of a client, as shown by /debug.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientView {
    /// Node ID that the client declares.
    pub node: String,
    /// Versions that were sent and acknowledged.
    #[serde(flatten)]
    pub view: SubscriptionView,
    /// For how many milliseconds the client has read nothing.
    pub blocked_ms: u64,
}

/// A stream with subscriptions.
struct Client {
    node: Arc<str>,
    flow: Flow,
    views: Vec<SubscriptionView>,
}

/// When the limit of connections was reached.
#[derive(Default)]
struct ConnectionLimit {
    log: LogLimiter,
    last: Option<Instant>,
}

/// One instance is shared by all servers of the process.
pub struct Shared {
    pub(super) registry: Handle,
    pub(super) metrics: Arc<Metrics>,
    pub(super) trust_domains: Vec<String>,
    pub(super) streams: Arc<Semaphore>,
    pub(super) limits: ServerLimits,
    admission: Mutex<Admission>,
    incomplete: SharedPool,
    connection_limit: Mutex<ConnectionLimit>,
    log_budget: Mutex<LogBudget>,
    clients: Mutex<BTreeMap<StreamId, Client>>,
    next_stream_id: AtomicU64,
    pub(super) start: Instant,
}

impl Shared {
    pub fn new(
        registry: Handle,
        metrics: Arc<Metrics>,
        trust_domains: Vec<String>,
        limits: ServerLimits,
    ) -> Arc<Self> {
        Arc::new(Self {
            registry,
            metrics,
            trust_domains,
            streams: Arc::new(Semaphore::new(limits.max_streams)),
            limits,
            admission: Mutex::new(Admission::new(limits.machines_per_source)),
            incomplete: SharedPool::new(INCOMPLETE_BYTES, usize::MAX),
            connection_limit: Mutex::default(),
            log_budget: Mutex::default(),
            clients: Mutex::default(),
            next_stream_id: AtomicU64::new(1),
            start: Instant::now(),
        })
    }

    /// Returns all subscriptions, ordered by stream.
    pub fn clients(&self) -> Vec<ClientView> {
        let clients = lock(&self.clients);
        let views = clients.values().flat_map(|client| {
            let blocked = client.flow.blocked().unwrap_or_default().as_millis();
            let blocked_ms = u64::try_from(blocked).unwrap_or(u64::MAX);
            let node = client.node.to_string();
            client.views.iter().map(move |view| ClientView {
                node: node.clone(),
                view: view.clone(),
                blocked_ms,
            })
        });
        views.collect()
    }

    /// Logs and counts that a new client finds all connections in use.
    pub(super) fn connection_limit_reached(&self) {
        self.metrics.connection_limit_reached.inc();
        let now = Instant::now();
        let mut limit = lock(&self.connection_limit);
        limit.last = Some(now);
        if let Some(clients) = limit.log.record(now) {
            warn!(
                limit = self.limits.max_streams,
                clients, "all connections in use, new clients wait or replace others (--max-streams)"
            );
        }
    }

    /// Returns a line for readiness if the limit of connections was reached recently.
    pub fn degradation(&self) -> Option<String> {
        let last = lock(&self.connection_limit).last?;
        (last.elapsed() < SHOWN).then(|| {
            format!("all {} connections in use, new clients wait (--max-streams)", self.limits.max_streams)
        })
    }

    /// Returns true unless the client has caused too many log lines.
    pub(super) fn may_log(&self, source: Source) -> bool {
        events::is_within_budget(&mut lock(&self.log_budget), Some(source), self.now())
    }

    pub(super) fn incomplete_limits(&self, source: Source) -> IncompleteLimits {
        IncompleteLimits { bytes: self.incomplete.clone(), source: Some(source), timeout: MESSAGE_TIMEOUT }
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn next_stream(&self) -> StreamId {
        self.next_stream_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn admission(&self) -> MutexGuard<'_, Admission> {
        lock(&self.admission)
    }

    /// Updates what /debug shows of a stream; an empty `views` removes it.
    pub(super) fn update_client(
        &self,
        stream: StreamId,
        node: &Arc<str>,
        flow: &Flow,
        views: Vec<SubscriptionView>,
    ) {
        let mut clients = lock(&self.clients);
        if views.is_empty() {
            clients.remove(&stream);
        } else {
            clients.insert(stream, Client { node: node.clone(), flow: flow.clone(), views });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds this lock")
}
