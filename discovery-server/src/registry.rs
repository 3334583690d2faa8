//! The task that owns the entries. It passes messages of streams, store and configuration to the
//! state machine in [`discovery::entries`], executes the resulting effects, and publishes snapshots.

mod condition_history;
pub(crate) mod events;
mod handle;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::config_dir::Configured;
use super::metrics::{self, Metrics};
use super::store::{Store, Write};
use condition_history::ConditionHistory;
use discovery::debounce::Debounce;
use discovery::entries::{
    Effect, Entries, Event, Input, Preserved, RemovalLimits, Settings, StreamCommand, StreamId, Timestamp,
};
use discovery::log_budget::LogBudget;
use discovery::objects::{Config, Key, LastEndpoint};
use discovery::snapshot::{Snapshot, SnapshotSettings};
use discovery::view::RegistryView;
use handle::Message;
use pacing::source::Source;

pub use condition_history::ConditionChange;
pub use handle::Handle;

/// Capacity of the channel from the streams to the registry. Streams wait while it is full.
const CAPACITY: usize = 4096;
/// Maximum number of messages processed before other event sources are polled.
const BATCH: usize = 1024;
/// Interval at which the task runs even without events.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// If the task has not run for this long, the process or its machine was suspended.
const SUSPENDED_AFTER: Duration = Duration::from_secs(5);

/// Everything that the registry is built from.
#[derive(Debug)]
pub struct RegistryConfig {
    pub settings: Settings,
    /// Policy for services without the annotation `app-health.io/last-endpoint`.
    pub last_endpoint: LastEndpoint,
    /// Address of the listeners for outbound requests; `None` if none are served.
    pub outbound_listeners: Option<IpAddr>,
    /// Namespaces whose services may be exported; `None` means all.
    pub export_namespaces: Option<BTreeSet<String>>,
    pub debounce: (Duration, Duration),
    pub store: Store,
    pub configured: watch::Receiver<Configured>,
    pub metrics: Arc<Metrics>,
}

/// Starts the registry task and publishes a first snapshot of store and configuration. The task
/// ends when `closing` is cancelled, and the store's task ends after it.
pub fn start(parts: RegistryConfig, closing: CancellationToken) -> (Handle, JoinHandle<()>) {
    let RegistryConfig {
        settings,
        last_endpoint,
        outbound_listeners,
        export_namespaces,
        debounce: (quiet, longest),
        store,
        configured,
        metrics,
    } = parts;
    let Store { stored, is_new, writes, inputs, degraded, isolated } = store;
    info!(entries = stored.len(), is_new, "store opened");
    let (inbox_sender, inbox) = mpsc::channel(CAPACITY);
    let (snapshots, snapshots_receiver) = watch::channel(Arc::default());
    // A store that is not empty is trusted, even if it knows fewer endpoints than a client.
    let startup_grace = stored.is_empty().then_some(settings.restart_grace);
    let removal_limits = settings.removal_limits();
    let mut registry = Registry {
        entries: Entries::new(settings, stored),
        config: Arc::default(),
        last_endpoint,
        outbound_listeners,
        export_namespaces,
        removal_limits,
        debounce: Debounce::new(quiet, longest),
        longest,
        startup_grace,
        start: Instant::now(),
        last_step: Duration::ZERO,
        unpublished_since: None,
        senders: HashMap::new(),
        sources: HashMap::new(),
        log_budget: LogBudget::default(),
        writes,
        snapshots,
        configured: configured.clone(),
        logged_errors: Vec::new(),
        metrics,
        history: ConditionHistory::default(),
    };
    registry.configure();
    registry.publish();
    let handle =
        Handle { inbox: inbox_sender, snapshots: snapshots_receiver, degraded, isolated, configured };
    (handle, tokio::spawn(registry.run(inbox, inputs, closing)))
}

struct Registry {
    entries: Entries,
    config: Arc<Config>,
    last_endpoint: LastEndpoint,
    outbound_listeners: Option<IpAddr>,
    export_namespaces: Option<BTreeSet<String>>,
    removal_limits: RemovalLimits,
    debounce: Debounce,
    longest: Duration,
    /// Time until which an empty store may have been lost, so that agents may still reconnect.
    startup_grace: Option<Duration>,
    start: Instant,
    /// Time of the last step.
    last_step: Duration,
    /// Time of the first change that is not published yet.
    unpublished_since: Option<Instant>,
    senders: HashMap<StreamId, (mpsc::Sender<StreamCommand>, Source)>,
    /// The source of the stream that was bound to an entry last.
    sources: HashMap<Key, Source>,
    log_budget: LogBudget,
    writes: super::store::PendingWrites,
    snapshots: watch::Sender<Arc<Snapshot>>,
    configured: watch::Receiver<Configured>,
    /// The configuration errors that were logged last.
    logged_errors: Vec<String>,
    metrics: Arc<Metrics>,
    history: ConditionHistory,
}

impl Registry {
    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Message>,
        mut inputs: mpsc::Receiver<Input>,
        closing: CancellationToken,
    ) {
        let mut batch = Vec::new();
        loop {
            let due = self.due();
            tokio::select! {
                () = closing.cancelled() => return,
                number = inbox.recv_many(&mut batch, BATCH) => {
                    if number == 0 {
                        return;
                    }
                    batch.drain(..).for_each(|message| self.take(message));
                }
                Some(input) = inputs.recv() => {
                    self.step(input);
                    for _ in 0..BATCH {
                        let Ok(input) = inputs.try_recv() else { break };
                        self.step(input);
                    }
                }
                Ok(()) = self.configured.changed() => self.configure(),
                () = sleep_until(due) => self.step(Input::Tick),
            }
            // Reports are processed before a push, unless the push is overdue by `--debounce-max`.
            let now = self.start.elapsed();
            let is_due = self.debounce.due().is_some_and(|due| {
                due <= now && (inbox.is_empty() || due.saturating_add(self.longest) <= now)
            });
            if self.startup_grace.take_if(|until| *until <= now).is_some() || is_due {
                self.publish();
            }
        }
    }

    /// Returns when the task must run again without an event.
    fn due(&self) -> Instant {
        let latest = self.start.elapsed() + HEARTBEAT_INTERVAL;
        let due = [self.entries.next_due(), self.debounce.due(), self.startup_grace, Some(latest)];
        self.start + due.into_iter().flatten().min().unwrap_or(latest)
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Opened(input, stream, sender, source) => {
                self.senders.insert(stream, (sender, source));
                self.step(input);
            }
            Message::Input(input) => {
                if let Input::Closed { stream } = input {
                    self.senders.remove(&stream);
                }
                self.step(input);
            }
            Message::History(key, sender) => {
                let _ = sender.send(self.history.of(&key));
            }
            Message::View(sender) => {
                let _ = sender.send(RegistryView {
                    startup_grace: self.startup_grace.is_some(),
                    config_errors: self.logged_errors.clone(),
                    self_preserving_services: self
                        .snapshots
                        .borrow()
                        .self_preserving_services()
                        .iter()
                        .map(Key::to_string)
                        .collect(),
                    export_conflicts: self.snapshots.borrow().export_conflicts().iter().cloned().collect(),
                    outbound_conflicts: self.snapshots.borrow().outbound_conflicts().cloned().collect(),
                    workloads: self.entries.view(self.start.elapsed()),
                });
            }
        }
    }

    fn configure(&mut self) {
        let mut configured = self.configured.borrow_and_update().clone();
        if let Some(allowed) = &self.export_namespaces {
            let config = Arc::make_mut(&mut configured.config);
            configured.warnings.extend(config.restrict_exports(allowed));
        }
        events::log_configuration(&self.logged_errors, &configured);
        metrics::set(&self.metrics.config_errors, configured.errors.len());
        self.logged_errors = configured.errors;
        // A new service needs a new snapshot even if no entry changes.
        if configured.config != self.config {
            self.config = configured.config.clone();
            self.change();
            self.step(Input::Config(configured.config));
        }
    }

    fn step(&mut self, input: Input) {
        let now = self.start.elapsed();
        let passed = now.saturating_sub(std::mem::replace(&mut self.last_step, now));
        if passed > SUSPENDED_AFTER {
            warn!(
                seconds = passed.as_secs(),
                "process was suspended; agents may reconnect for --restart-grace"
            );
            self.step_at(now, Input::ProcessResumed);
        }
        self.step_at(now, input);
    }

    fn step_at(&mut self, now: Duration, input: Input) {
        let effects = self.entries.step(now, wall(), input);
        effects.into_iter().for_each(|effect| self.apply(effect));
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Command { stream, command } => {
                let is_close = matches!(command, StreamCommand::Close { .. });
                self.send_to_stream(stream, command);
                if is_close {
                    self.senders.remove(&stream);
                }
            }
            Effect::Write { key, write, record, session } => {
                self.writes.push(key, Write { sequence: write, record, session });
            }
            Effect::Changed { .. } => self.change(),
            Effect::Event(event) => {
                events::count_event(&event, &self.metrics);
                if self.may_log(&event) {
                    events::log_event(&event);
                }
                self.history.record(&event, wall());
            }
        }
    }

    /// Returns true unless the client that caused the event has caused too many log lines.
    fn may_log(&mut self, event: &Event) -> bool {
        let of_stream = |stream| self.senders.get(stream).map(|(_, source)| *source);
        let source = match event {
            Event::Report(_) => None,
            Event::Registered { stream, key } => {
                let source = of_stream(stream);
                self.sources.extend(source.map(|source| (key.clone(), source)));
                // It is logged at a level that is off by default.
                None
            }
            Event::Pending { stream, .. } | Event::Rejected { stream, .. } => of_stream(stream),
            Event::PeerAddress { peer, .. } => Some(peer.ip().into()),
            Event::Deleted { key, .. } => self.sources.remove(key),
            Event::Transition { key, .. }
            | Event::ReporterReplaced { key, .. }
            | Event::DuplicateAgent { key }
            | Event::Silent { key }
            | Event::ProbeNacked { key, .. } => self.sources.get(key).copied(),
        };
        events::is_within_budget(&mut self.log_budget, source, self.start.elapsed())
    }

    fn change(&mut self) {
        self.unpublished_since.get_or_insert_with(Instant::now);
        self.debounce.changed(self.start.elapsed());
    }

    /// Sends a message to a stream. If its channel is full, the message is sent later, except for
    /// an acknowledgement: the agent repeats the report then.
    fn send_to_stream(&self, stream: StreamId, command: StreamCommand) {
        let Some((sender, _)) = self.senders.get(&stream) else { return };
        match sender.try_send(command) {
            Err(mpsc::error::TrySendError::Full(command))
                if !matches!(command, StreamCommand::Ack { .. }) =>
            {
                let sender = sender.clone();
                tokio::spawn(async move { sender.send(command).await });
            }
            _ => {}
        }
    }

    fn publish(&mut self) {
        let now = self.start.elapsed();
        let settings = SnapshotSettings {
            last_endpoint: self.last_endpoint,
            startup_grace: self.startup_grace.is_some(),
            outbound_listeners: self.outbound_listeners,
            removal_limits: self.removal_limits,
            now: self.entries.steady_time(now, wall()),
        };
        let previous = self.snapshots.borrow().clone();
        let snapshot =
            Snapshot::build(&self.config, &mut self.entries.workloads(), settings, Some(&previous));
        let preserved = snapshot.preserved().clone();
        let count =
            |is: fn(Preserved) -> bool| preserved.values().filter(|preserved| is(**preserved)).count();
        metrics::set(
            &self.metrics.last_endpoint_preserved,
            count(|preserved| preserved == Preserved::LastEndpoint),
        );
        metrics::set(&self.metrics.self_preserved, count(Preserved::is_self_preserved));
        metrics::set(&self.metrics.panic_threshold, count(|preserved| preserved == Preserved::Unhealthy));
        self.metrics.startup_grace.set(settings.startup_grace.into());
        for (state, number) in ["True", "False", "Unknown", "none"].into_iter().zip(self.entries.counts()) {
            self.metrics.entries(state, number);
        }
        let (sources, log_budget) = (&self.sources, &mut self.log_budget);
        events::log_preserved(previous.preserved(), &preserved, |key| {
            events::is_within_budget(log_budget, sources.get(key).copied(), now)
        });
        events::log_outbound_conflicts(&previous, &snapshot);
        events::log_export_conflicts(&previous, &snapshot);
        self.snapshots.send_replace(Arc::new(snapshot));
        self.debounce.pushed(now);
        if let Some(changed) = self.unpublished_since.take() {
            self.metrics.push_latency.observe(changed.elapsed().as_secs_f64());
        }
        // Disconnected entries that the snapshot does not keep are deleted now, which is another
        // change.
        self.step(Input::Preserved(preserved));
    }
}

/// Returns the wall-clock time.
fn wall() -> Timestamp {
    Timestamp::from_seconds(OffsetDateTime::now_utc().unix_timestamp())
}

#[cfg(test)]
mod tests;
