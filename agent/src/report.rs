//! Reports a workload's health to a discovery server over a gRPC stream that is independent of
//! Envoy's xDS streams. [`Reporter`] decides what to send and when; this module performs the I/O.

mod certificates;
pub mod connection;
mod goaway;
mod link;
mod random;
pub mod tls;
mod view;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};
use workload_health::Hello;
use workload_health::health_report::{PROXY_CONFIG, READINESS_PROBE, printable};

use crate::config::DiscoveryConfig;
use crate::exit::Failure;
use crate::health::{Health, HealthNow};
use crate::metrics::Metrics;
use crate::readiness::Phase;
use crate::readiness::poller::Observer;
use crate::xds::{Node, Request, Response};
use certificates::Certificates;
use link::{Event, Link};
pub use view::{StreamNow, StreamView};
use workload_health::reporter::{
    Attempt, Disconnect, Effect, HealthStatus, Input, Report, Reporter, ReporterSettings,
};

/// Interval between two checks of the certificate files for changes.
const RELOAD: Duration = Duration::from_secs(5);
/// Capacity of the queue that carries validation results of pushed probes to the reporting task.
const VERDICTS: usize = 4;

/// Starts the reporting task. The task ends once the final report is sent, or once
/// `goodbye_timeout` has expired. Returns an error if the certificate files cannot be used.
pub fn start(
    config: DiscoveryConfig,
    health: Health,
    observer: Arc<Observer>,
    metrics: Arc<Metrics>,
) -> Result<(watch::Receiver<StreamNow>, JoinHandle<()>), Failure> {
    let certificates = Certificates::new(config.servers.clone(), config.tls.clone())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let settings = ReporterSettings {
        epoch: random::epoch(),
        heartbeat: config.heartbeat,
        istio_heartbeat: config.plain_heartbeat,
        final_report_timeout: config.goodbye_timeout,
    };
    let started = Instant::now();
    let now = health.subscribe();
    let level = level(&now.borrow(), started);
    let (verdict, verdicts) = mpsc::channel(VERDICTS);
    let (view, views) = watch::channel(StreamNow::default());
    let reporting = Reporting {
        reporter: Reporter::new(settings, level),
        started,
        config,
        certificates,
        link: Link::None,
        health,
        verdict,
        offer: None,
        view,
        metrics,
        told: None,
    };
    Ok((views, tokio::spawn(reporting.run(now, verdicts, observer))))
}

struct Reporting {
    reporter: Reporter,
    started: Instant,
    config: DiscoveryConfig,
    certificates: Certificates,
    link: Link,
    health: Health,
    verdict: mpsc::Sender<Input>,
    /// Validation of the most recently pushed probe; a newer push aborts it.
    offer: Option<AbortOnDropHandle<()>>,
    view: watch::Sender<StreamNow>,
    metrics: Arc<Metrics>,
    /// Text of the connection failure that was logged last; the same text is logged only once.
    told: Option<String>,
}

impl Reporting {
    async fn run(
        mut self,
        mut health: watch::Receiver<HealthNow>,
        mut verdicts: mpsc::Receiver<Input>,
        observer: Arc<Observer>,
    ) {
        let mut phases = observer.subscribe();
        let mut reload = interval(RELOAD);
        reload.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_probed, mut is_leaving) = (true, false);
        let mut input = Input::Tick;
        loop {
            if self.step(input) {
                return;
            }
            let due = self.reporter.next_due().map(|due| due.saturating_sub(self.started.elapsed()));
            input = tokio::select! {
                changed = health.changed(), if is_probed => {
                    is_probed = changed.is_ok();
                    Input::Status(level(&health.borrow_and_update(), self.started))
                }
                _ = phases.wait_for(|snapshot| snapshot.phase == Phase::Terminating), if !is_leaving => {
                    is_leaving = true;
                    Input::Shutdown
                }
                event = self.link.event() => self.happened(event),
                Some(verdict) = verdicts.recv() => verdict,
                _ = reload.tick() => {
                    if self.certificates.reload(&self.metrics) { Input::FilesChanged } else { Input::Tick }
                }
                () = sleep(due.unwrap_or(Duration::MAX)), if due.is_some() => Input::Tick,
            };
        }
    }

    /// Passes `input` to the reporter and applies its effects. Returns true if the reporter is
    /// done.
    fn step(&mut self, input: Input) -> bool {
        let now = self.started.elapsed();
        let mut is_done = false;
        for effect in self.reporter.step(now, input, &mut random::number) {
            is_done |= effect == Effect::Done;
            self.apply(effect);
        }
        self.metrics.reports.unacknowledged(self.reporter.unacknowledged().map(|since| self.started + since));
        let session = self.reporter.session();
        self.view.send_if_modified(|view| std::mem::replace(&mut view.session, session) != session);
        is_done
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Connect => self.link.connect(self.certificates.targets().to_vec(), random::number),
            Effect::Send(report, saying) => {
                self.metrics.reports.report(match saying {
                    Attempt::New => "sent",
                    Attempt::Retry => "resent",
                });
                self.link.send(self.request(report));
            }
            Effect::ValidateProbe { stream, version, nonce, probe } => {
                let (health, verdict) = (self.health.clone(), self.verdict.clone());
                self.offer = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                    let judged = health.push(probe).await;
                    let input = Input::Validated { stream, version, nonce, result: judged };
                    // Sending fails only if the reporting task has ended.
                    let _ = verdict.send(input).await;
                })));
            }
            Effect::AckOrNack { version, nonce, nack_reason } => {
                self.link.send(Request::Answer { version, nonce, refusal: nack_reason });
            }
            Effect::HalfClose => self.link.half_close(),
            Effect::Close | Effect::Done => self.closed(None),
        }
    }

    fn request(&self, report: Report) -> Request {
        match report {
            Report::Istio { healthy: true, .. } => Request::Report { error: None, ours: None },
            Report::Istio { healthy: false, message } => Request::Report { error: Some(message), ours: None },
            Report::AppHealth(report) => Request::Report {
                error: (report.state != workload_health::State::Healthy).then(|| report.message.clone()),
                ours: Some(Box::new((self.config.node.id.clone(), report.to_json()))),
            },
        }
    }

    fn happened(&mut self, event: Event) -> Input {
        match event {
            Event::Connected(connection) => {
                let peer = connection.peer.to_string();
                info!(peer, server = %connection.origin, "connected to the discovery server");
                self.metrics.reports.connected(true);
                self.metrics.reports.connect("ok");
                self.view.send_modify(|view| view.connected = Some((peer, Instant::now())));
                self.told = None;
                self.link.open(connection, self.config.variant, self.first_request());
                Input::Opened
            }
            Event::Failed(why) => {
                self.metrics.reports.connect("failed");
                self.closed(Some(why));
                Input::Disconnected(Disconnect::Transient)
            }
            Event::Heard(Response::Acknowledged(version)) => {
                debug!(version = printable(&version), "health report acknowledged by the discovery server");
                self.metrics.reports.report("acked");
                self.view.send_modify(|view| view.acknowledged = Some((printable(&version), Instant::now())));
                Input::Acknowledged(version)
            }
            Event::Heard(Response::Hello { version, nonce, content }) => {
                match content.and_then(|content| Hello::parse(&content)) {
                    Ok(hello) => {
                        if self.reporter.session() != Some(hello.session) {
                            info!(
                                session = hello.session,
                                "app-health session established with the discovery server"
                            );
                        }
                        Input::Hello { hello, version, nonce }
                    }
                    Err(text) => {
                        warn!(text, "invalid hello message received from the discovery server");
                        Input::Malformed { text, nonce }
                    }
                }
            }
            Event::Heard(Response::Ended { refused, why }) => {
                if refused {
                    self.metrics.reports.connect("refused");
                }
                self.closed(Some(why));
                Input::Disconnected(if refused { Disconnect::Rejected } else { Disconnect::Transient })
            }
        }
    }

    /// Clears the connection state. `why` is the reason of an unexpected end, `None` if the agent
    /// closed the stream.
    fn closed(&mut self, why: Option<String>) {
        self.link = Link::None;
        self.offer = None;
        self.metrics.reports.connected(false);
        self.view.send_modify(|view| {
            view.connected = None;
            view.error.clone_from(&why);
        });
        if why.is_some() && self.told != why {
            warn!(why, "disconnected from the discovery server");
            self.told = why;
        }
    }

    fn first_request(&self) -> Request {
        let Node { id, locality, metadata } = self.config.node.clone();
        let mut node = Node { id, locality, metadata };
        let probe = self.health.subscribe().borrow().probe.clone();
        if let (Some(probe), Value::Object(fields)) = (probe, &mut node.metadata) {
            // istiod treats a WorkloadEntry as health-checked if the node metadata has this field.
            fields.insert(PROXY_CONFIG.to_owned(), json!({ READINESS_PROBE: *probe }));
        }
        Request::First(Box::new(node))
    }
}

fn level(now: &HealthNow, started: Instant) -> HealthStatus {
    let since_start = |at: Instant| at.saturating_duration_since(started);
    HealthStatus {
        generation: now.generation,
        state: now.state,
        reason: now.reason,
        message: now.message.clone(),
        since: since_start(now.since),
        last_probe: now.last_probe.map(since_start),
        interval: now.interval,
        verdict_due: now.verdict_due.map(since_start),
    }
}
