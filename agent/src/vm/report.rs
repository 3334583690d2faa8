//! Reports a workload's health to a discovery server over a gRPC stream that is independent of
//! Envoy's xDS streams. [`Reporter`] decides what to send and when; this module performs the I/O.

mod certificates;
mod config;
pub mod connection;
mod health_link;
mod stream_handle;
mod stream_status;
mod stream_table;
pub mod tls;
pub mod token;
pub mod xds;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};
use workload_health::Hello;
use workload_health::health_report::{PROXY_CONFIG, READINESS_PROBE, printable};

use crate::exit::Failure;
use crate::metrics::Metrics;
use crate::random;
use crate::readiness::Phase;
use crate::state::AgentState;
use crate::vm::health::{HealthHandle, HealthSnapshot};
pub(super) use certificates::Certificates;
pub use config::{DiscoveryConfig, DiscoveryServer};
pub use health_link::HealthLink;
use stream_handle::{Event, StreamHandle};
pub use stream_status::StreamStatus;
pub use stream_table::stream_table;
use workload_health::reporter::{Attempt, Disconnect, Effect, Input, Reporter, ReporterSettings};
use xds::{Request, Response};

/// Capacity of the queue that carries validation results of pushed probes to the reporting task.
const VALIDATION_QUEUE: usize = 4;

/// Starts the reporting task. The task ends once the final report is sent, or once
/// `final_report_timeout` has expired. Returns an error if the certificate files cannot be used.
pub fn start(
    config: DiscoveryConfig,
    health: HealthHandle,
    observer: Arc<AgentState>,
    metrics: Arc<Metrics>,
    proxy: Option<mpsc::Sender<HealthLink>>,
) -> Result<(watch::Receiver<StreamStatus>, JoinHandle<()>), Failure> {
    let is_proxied = proxy.is_some();
    let transport = match proxy {
        Some(links) => Transport::Proxy(links),
        None => {
            Transport::Own(Certificates::new(&config).map_err(|error| Failure::Usage(error.to_string()))?)
        }
    };
    let mut random = random::generator();
    let settings = ReporterSettings {
        epoch: format!("{:032x}", random.u128(..)),
        heartbeat: config.heartbeat,
        istio_heartbeat: config.istio_heartbeat,
        final_report_timeout: config.final_report_timeout,
        is_proxied,
    };
    let snapshots = health.subscribe();
    let health_status = snapshots.borrow().status.clone();
    let (validated, validations) = mpsc::channel(VALIDATION_QUEUE);
    let (status, statuses) = watch::channel(StreamStatus::default());
    let reporting = ReportTask {
        reporter: Reporter::new(settings, health_status),
        started: health.started(),
        config,
        transport,
        stream: StreamHandle::None,
        health,
        validated,
        validation_task: None,
        status,
        metrics,
        random,
        last_logged_error: None,
    };
    Ok((statuses, tokio::spawn(reporting.run(snapshots, validations, observer))))
}

/// How the task gets a stream.
enum Transport {
    /// It opens its own.
    Own(Certificates),
    /// It uses that of the xDS proxy.
    Proxy(mpsc::Sender<HealthLink>),
}

impl Transport {
    async fn changed(&mut self, metrics: &Metrics) {
        match self {
            Self::Own(certificates) => certificates.changed(metrics).await,
            Self::Proxy(_) => std::future::pending().await,
        }
    }
}

struct ReportTask {
    reporter: Reporter,
    started: Instant,
    config: DiscoveryConfig,
    transport: Transport,
    stream: StreamHandle,
    health: HealthHandle,
    validated: mpsc::Sender<Input>,
    /// Validation of the most recently pushed probe; a newer push aborts it.
    validation_task: Option<AbortOnDropHandle<()>>,
    status: watch::Sender<StreamStatus>,
    metrics: Arc<Metrics>,
    random: fastrand::Rng,
    /// Text of the connection failure that was logged last; the same text is logged only once.
    last_logged_error: Option<String>,
}

impl ReportTask {
    async fn run(
        mut self,
        mut snapshots: watch::Receiver<HealthSnapshot>,
        mut validations: mpsc::Receiver<Input>,
        observer: Arc<AgentState>,
    ) {
        let mut phases = observer.subscribe();
        let (mut is_probed, mut is_shutting_down) = (true, false);
        let mut input = Input::Tick;
        loop {
            if self.step(input) {
                return;
            }
            let due = self.reporter.next_due().map(|due| due.saturating_sub(self.started.elapsed()));
            input = tokio::select! {
                changed = snapshots.changed(), if is_probed => {
                    is_probed = changed.is_ok();
                    Input::Status(snapshots.borrow_and_update().status.clone())
                }
                _ = phases.wait_for(|snapshot| snapshot.phase == Phase::Terminating), if !is_shutting_down => {
                    is_shutting_down = true;
                    Input::Shutdown
                }
                event = self.stream.event() => self.on_event(event),
                Some(validated) = validations.recv() => validated,
                () = self.transport.changed(&self.metrics) => Input::FilesChanged,
                () = sleep(due.unwrap_or(Duration::MAX)), if due.is_some() => Input::Tick,
            };
        }
    }

    /// Passes `input` to the reporter and applies its effects. Returns true if the reporter is
    /// done.
    fn step(&mut self, input: Input) -> bool {
        let now = self.started.elapsed();
        let mut is_done = false;
        for effect in self.reporter.step(now, input, &mut || self.random.f64()) {
            is_done |= effect == Effect::Done;
            self.apply(effect);
        }
        self.metrics
            .vm
            .reports
            .unacknowledged(self.reporter.unacknowledged().map(|since| self.started + since));
        let session = self.reporter.session();
        self.status.send_if_modified(|status| std::mem::replace(&mut status.session, session) != session);
        is_done
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Connect => match &self.transport {
                Transport::Own(certificates) => {
                    self.stream.connect(certificates.targets().to_vec(), self.random.fork());
                }
                Transport::Proxy(links) => self.stream.attach(links),
            },
            Effect::Send(report, attempt) => {
                self.metrics.vm.reports.report(match attempt {
                    Attempt::New => "sent",
                    Attempt::Retry => "resent",
                });
                self.stream.send(Request::report(report, &self.config.node.id));
                self.status.send_if_modified(|status| std::mem::take(&mut status.nothing_to_report));
            }
            Effect::NothingToReport => {
                let is_news =
                    |status: &mut StreamStatus| !std::mem::replace(&mut status.nothing_to_report, true);
                if self.status.send_if_modified(is_news) {
                    warn!(
                        "health is not reported: there is no probe, and the discovery server, which is not app-health's, sends none; it serves this workload whatever its health is. Set --workload-group"
                    );
                }
            }
            Effect::ValidateProbe { stream, version, nonce, probe } => {
                let (health, validated) = (self.health.clone(), self.validated.clone());
                self.validation_task = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                    let result = health.push(probe).await;
                    let input = Input::Validated { stream, version, nonce, result };
                    // Sending fails only if the reporting task has ended.
                    let _ = validated.send(input).await;
                })));
            }
            Effect::AckOrNack { version, nonce, nack_reason } => {
                self.stream.send(Request::AckOrNack { version, nonce, nack_reason });
            }
            Effect::HalfClose => self.stream.half_close(),
            Effect::Close | Effect::Done => self.on_stream_closed(None),
        }
    }

    fn on_event(&mut self, event: Event) -> Input {
        match event {
            Event::Connected(connection) => {
                let peer = connection.peer.to_string();
                info!(peer, server = %connection.origin, "connected to the discovery server");
                self.metrics.vm.reports.connected(true);
                self.metrics.vm.reports.connect("ok");
                self.status.send_modify(|status| status.connected = Some((peer, Instant::now())));
                self.last_logged_error = None;
                self.stream.open(connection, self.config.variant, self.first_request());
                Input::Opened
            }
            Event::Attached(peer, server) => {
                debug!(peer, server, "health reports use the xDS stream of Envoy");
                self.status.send_modify(|status| status.connected = Some((peer, Instant::now())));
                self.last_logged_error = None;
                Input::Opened
            }
            Event::Failed(why) => {
                self.metrics.vm.reports.connect("failed");
                self.on_stream_closed(Some(why));
                Input::Disconnected(Disconnect::Transient)
            }
            Event::Received(Response::Acknowledged(version)) => {
                debug!(version = printable(&version), "health report acknowledged by the discovery server");
                self.metrics.vm.reports.report("acked");
                self.status
                    .send_modify(|status| status.acknowledged = Some((printable(&version), Instant::now())));
                Input::Acknowledged(version)
            }
            Event::Received(Response::Hello { version, nonce, content }) => {
                match content.and_then(|content| Hello::parse(&content)) {
                    Ok(hello) => {
                        if self.reporter.session() != Some(hello.session) {
                            info!(session = hello.session, "app-health session established");
                        }
                        Input::Hello { hello, version, nonce }
                    }
                    Err(text) => {
                        warn!(text, "invalid hello message received from the discovery server");
                        Input::Malformed { text, nonce }
                    }
                }
            }
            Event::Received(Response::Ended { rejected, why }) => {
                if rejected {
                    self.metrics.vm.reports.connect("refused");
                }
                self.on_stream_closed(Some(why));
                Input::Disconnected(if rejected { Disconnect::Rejected } else { Disconnect::Transient })
            }
        }
    }

    /// Clears the connection state. `why` is the reason of an unexpected end, `None` if the agent
    /// closed the stream.
    fn on_stream_closed(&mut self, why: Option<String>) {
        self.stream = StreamHandle::None;
        self.validation_task = None;
        if matches!(self.transport, Transport::Own(_)) {
            self.metrics.vm.reports.connected(false);
        }
        self.status.send_modify(|status| {
            status.connected = None;
            status.error.clone_from(&why);
        });
        if why.is_some() && self.last_logged_error != why {
            warn!(why, "disconnected from the discovery server");
            self.last_logged_error = why;
        }
    }

    fn first_request(&self) -> Request {
        Request::First(Box::new(node_with_probe(&self.config.node, &self.health)))
    }
}

/// Returns the node identity with the probe in force.
pub(super) fn node_with_probe(node: &xds::Node, health: &HealthHandle) -> xds::Node {
    let mut node = node.clone();
    let probe = health.subscribe().borrow().probe.clone();
    if let (Some(probe), Value::Object(fields)) = (probe, &mut node.metadata) {
        // istiod treats a WorkloadEntry as health-checked if the node metadata has this field.
        fields.insert(PROXY_CONFIG.to_owned(), json!({ READINESS_PROBE: probe }));
    }
    node
}
