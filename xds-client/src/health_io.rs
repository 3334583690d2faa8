//! What the reports of health need besides the stream: the probe in force, and the status that the local
//! server shows.

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};
use workload_health::health_report::{PROXY_CONFIG, READINESS_PROBE};
use workload_health::reporter::Attempt;
use workload_health::text::printable;
use xds::Node;
use xds_proxy::{HealthEvent, Input, Proxy};

use super::StreamStatus;
use agent_state::metrics::Metrics;
use workload_prober::HealthHandle;

/// Capacity of the queue that carries validation results of pushed probes.
const VALIDATION_QUEUE: usize = 4;

pub(super) struct HealthIo {
    pub(super) handle: HealthHandle,
    /// The node identity, without the probe.
    node: Node,
    validated: mpsc::Sender<Input>,
    /// Validation of the most recently pushed probe; a newer push aborts it.
    validation_task: Option<AbortOnDropHandle<()>>,
    status: watch::Sender<StreamStatus>,
    /// True once the final report is delivered or has timed out.
    pub(super) is_done: bool,
}

impl HealthIo {
    /// Also returns the status, and the results of validations. `is_done` is true if nothing is reported.
    pub(super) fn new(
        handle: HealthHandle,
        node: Node,
        is_done: bool,
    ) -> (Self, watch::Receiver<StreamStatus>, mpsc::Receiver<Input>) {
        let (validated, validations) = mpsc::channel(VALIDATION_QUEUE);
        let (status, statuses) = watch::channel(StreamStatus::default());
        let io = Self { handle, node, validated, validation_task: None, status, is_done };
        (io, statuses, validations)
    }

    /// Returns the node identity with the probe in force.
    pub(super) fn node(&self) -> Box<Node> {
        let mut node = self.node.clone();
        let probe = self.handle.subscribe().borrow().probe.clone();
        if let (Some(probe), Value::Object(fields)) = (probe, &mut node.metadata) {
            // istiod treats a WorkloadEntry as health-checked if the node metadata has this field.
            fields.insert(PROXY_CONFIG.to_owned(), json!({ READINESS_PROBE: probe }));
        }
        Box::new(node)
    }

    /// Shows why the stream, or the attempt to open one, has failed.
    pub(super) fn failed(&self, reason: &str) {
        self.status.send_modify(|status| status.error = Some(reason.to_owned()));
    }

    /// Shows that the last stream, or attempt to open one, did not fail.
    pub(super) fn closed_by_agent(&self) {
        self.status.send_if_modified(|status| status.error.take().is_some());
    }

    /// Shows what a step has changed.
    pub(super) fn stepped(&self, proxy: &Proxy, started: Instant, metrics: &Metrics) {
        let reporter = proxy.reporter();
        metrics.vm.reports.unacknowledged(reporter.unacknowledged().map(|since| started + since));
        let session = reporter.session();
        self.status.send_if_modified(|status| std::mem::replace(&mut status.session, session) != session);
    }

    /// `peer` is the address of the server.
    pub(super) fn on_event(&mut self, event: HealthEvent, peer: Option<&str>, metrics: &Metrics) {
        let set_connected = |connected| self.status.send_modify(|status| status.connected = connected);
        match event {
            HealthEvent::Opened => set_connected(peer.map(|peer| (peer.to_owned(), Instant::now()))),
            HealthEvent::Closed => {
                self.validation_task = None;
                set_connected(None);
            }
            HealthEvent::Sent(attempt) => {
                metrics.vm.reports.report(match attempt {
                    Attempt::New => "sent",
                    Attempt::Retry => "resent",
                });
                self.status.send_if_modified(|status| std::mem::take(&mut status.nothing_to_report));
            }
            HealthEvent::Acknowledged(version) => {
                let version = printable(&version);
                debug!(version, "health report acknowledged by the discovery server");
                metrics.vm.reports.report("acked");
                self.status.send_modify(|status| status.acknowledged = Some((version, Instant::now())));
            }
            HealthEvent::Session(session) => info!(session, "app-health session established"),
            HealthEvent::InvalidHello(text) => {
                warn!(text, "invalid hello message received from the discovery server");
            }
            HealthEvent::NothingToReport => {
                let set = |status: &mut StreamStatus| !std::mem::replace(&mut status.nothing_to_report, true);
                if self.status.send_if_modified(set) {
                    warn!(
                        "health is not reported: there is no probe, and the discovery server, which is not app-health's, sends none; it serves this workload whatever its health is. Set --workload-group"
                    );
                }
            }
            HealthEvent::ValidateProbe { hello, probe } => {
                let (health, validated) = (self.handle.clone(), self.validated.clone());
                self.validation_task = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                    let result = health.push(probe).await;
                    // Sending fails only if the task of the stream has ended.
                    let _ = validated.send(Input::ProbeValidated { hello, result }).await;
                })));
            }
            HealthEvent::Done => self.is_done = true,
        }
    }
}
