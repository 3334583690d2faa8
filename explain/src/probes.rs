//! The table of a Pod's probes: what was declared, where each is sent, what it answers.

mod declared;
pub(crate) mod failures;
pub(crate) mod meaning;
mod table;
mod undeclared_port;

use injector::{Handler, HandlerField, Probe, ProbeKind};
use probe::reason::Reason;
use serde::Serialize;
use serde_json::Value;

use crate::advice;
use crate::container::{Container, Role};
use crate::destination::Destination;
use crate::event::Event;
use crate::requests::{PROBES, is_rewritten, is_sent, rewritten_path};
use crate::situation::{ProbeResult, Situation};
use crate::wording::probe::ProbeError;
use meaning::{Meaning, ProbeContext};

/// The body of Envoy's response to a client that exceeds its rate limit.
const RATE_LIMITED: &str = "local_rate_limited";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Passing,
    Failing,
    /// kubelet does not send it at present.
    Waiting,
    /// It could not be requested, and nothing else says what it answers.
    Unknown,
}

/// One probe of one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeRow {
    pub container: String,
    pub probe: ProbeKind,
    /// The probe as it was written, in the form of `kubectl describe`.
    pub declared: String,
    pub destination: Destination,
    /// Where it is sent, for example `:15020/app-health/app/readyz`.
    pub sent_to: String,
    pub state: State,
    /// The HTTP status that kubelet gets, if there is one.
    pub status: Option<u16>,
    /// The word of docs/answers.md for a rewritten probe.
    pub reason: Option<&'static str>,
    /// One line about the state.
    pub text: String,
    /// The time since which it fails, RFC 3339.
    pub since: Option<String>,
    /// How often it failed: since the start of Envoy, or as often as events say.
    pub failures: Option<u64>,
    /// How long the response took, measured through the API server.
    pub milliseconds: Option<u64>,
    pub timeout_milliseconds: u64,
    pub advice: String,
    /// False if the advice is a hint.
    #[serde(skip)]
    pub(crate) certain: bool,
    /// The error that kubelet reports, if it got no status.
    #[serde(skip)]
    pub(crate) error: Option<ProbeError>,
    /// True if kubelet cannot perform the probe. It discards such a result (`doProbe` in
    /// pkg/kubelet/prober/worker.go), so the initial one remains: a readiness or startup probe has
    /// not succeeded, and a liveness or startup probe has not failed.
    #[serde(skip)]
    pub(crate) is_discarded: bool,
}

impl ProbeRow {
    /// Returns true if the response took more than half of its timeout.
    pub(crate) fn is_slow(&self) -> bool {
        self.state == State::Passing
            && self.milliseconds.is_some_and(|taken| taken.saturating_mul(2) > self.timeout_milliseconds)
    }
}

/// Returns a row for each probe of each container except the sidecar.
pub(crate) fn rows(
    situation: &Situation,
    pod: &Value,
    containers: &[Container<'_>],
    events: &[Event],
) -> Vec<ProbeRow> {
    let others = containers.iter().filter(|container| container.role != Role::Proxy);
    let declared = others.flat_map(|container| {
        PROBES.into_iter().filter_map(move |kind| Some((container, container.probe(kind)?)))
    });
    declared.map(|(container, probe)| row(situation, pod, container, probe, events)).collect()
}

fn row(
    situation: &Situation,
    pod: &Value,
    container: &Container<'_>,
    sent: Probe<'_>,
    events: &[Event],
) -> ProbeRow {
    let kind = sent.kind;
    let original = declared::original(pod, container, sent);
    let declared = original.as_ref().map_or(sent, |value| Probe { kind, value });
    let (destination, sent_to) = destination(container, sent);
    let mut row = ProbeRow {
        container: container.name.to_owned(),
        probe: kind,
        declared: declared::describe(declared),
        destination,
        sent_to,
        state: State::Unknown,
        status: None,
        reason: None,
        text: String::new(),
        since: None,
        failures: failures::count(situation, container.name, kind, events),
        milliseconds: None,
        timeout_milliseconds: declared.timeout().saturating_mul(1000),
        advice: String::new(),
        certain: true,
        error: None,
        is_discarded: false,
    };
    let context = ProbeContext { situation, pod, container, kind, destination };
    let answer =
        situation.answers.iter().find(|answer| answer.container == container.name && answer.kind == kind);
    let undeclared_port = undeclared_port::name(container, sent);
    match answer {
        _ if !is_sent(container, kind) => not_sent(&mut row, container, kind),
        _ if let Some(port) = undeclared_port => undeclared_port::describe(&mut row, port),
        None => from_kubelet(&mut row, context, events),
        Some(answer) => {
            row.milliseconds = Some(answer.milliseconds);
            match &answer.result {
                // The limit concerns this client, not kubelet.
                ProbeResult::Response { status: 429, body } if body == RATE_LIMITED => {
                    from_kubelet(&mut row, context, events);
                }
                ProbeResult::Response { status, body } => response(&mut row, context, *status, body),
                ProbeResult::Unreachable(reason) => {
                    row.milliseconds = None;
                    unreachable(&mut row, reason, context, events);
                }
                ProbeResult::Forbidden | ProbeResult::Failed(_) => {
                    row.milliseconds = None;
                    from_kubelet(&mut row, context, events);
                }
            }
        }
    }
    if row.state == State::Failing {
        row.since = failures::since(situation, container.name, kind, events);
    }
    row
}

fn destination(container: &Container<'_>, sent: Probe<'_>) -> (Destination, String) {
    let handler = sent.handler();
    let (kind, fields) = match handler {
        Some(Handler::Network(kind, fields)) => (kind, fields),
        Some(Handler::Unknown(name)) => return (Destination::Unknown, format!("an unknown handler {name}")),
        Some(Handler::Exec(_) | Handler::Sleep(_)) | None => {
            return (Destination::Command, "a command in the container".to_owned());
        }
    };
    let path = declared::text(kind, fields, HandlerField::Path);
    let port = match &fields["port"] {
        Value::String(name) => {
            container.port_number(&fields["port"]).map_or_else(|| name.clone(), |port| port.to_string())
        }
        port => port.to_string(),
    };
    match handler.and_then(Handler::host) {
        Some(host) => (Destination::OtherHost, format!("{host}:{port}{path}")),
        None if is_rewritten(sent) => (Destination::Sidecar, format!(":{port}{path}")),
        None => (Destination::Application, format!(":{port}{path}")),
    }
}

fn not_sent(row: &mut ProbeRow, container: &Container<'_>, kind: ProbeKind) {
    if kind == ProbeKind::Startup && container.is_started() {
        row.state = State::Passing;
        row.text = "succeeded".to_owned();
        return;
    }
    row.state = State::Waiting;
    row.text =
        if container.is_running() { "waits for the startup probe" } else { "the container does not run" }
            .to_owned();
}

fn response(row: &mut ProbeRow, context: ProbeContext<'_>, status: u16, body: &str) {
    if (200..400).contains(&status) {
        row.status = Some(status);
        row.state = State::Passing;
        row.text = status.to_string();
        return;
    }
    fails(row, context.of_status(status, Some(body)));
}

fn fails(row: &mut ProbeRow, meaning: Meaning) {
    row.state = State::Failing;
    row.status = meaning.status;
    row.reason = meaning.reason.map(Reason::word);
    row.error = meaning.error;
    row.text = meaning.text;
    row.advice = meaning.advice;
    row.certain = meaning.certain;
}

/// A connection that the API server is refused, kubelet is refused too. Any other failure may concern
/// the API server alone.
fn unreachable(row: &mut ProbeRow, reason: &str, context: ProbeContext<'_>, events: &[Event]) {
    if ProbeError::of(reason) != ProbeError::Refused {
        return from_kubelet(row, context, events);
    }
    if context.has_no_receiver() {
        return fails(row, context.without_sidecar(reason));
    }
    row.error = Some(ProbeError::Refused);
    row.state = State::Failing;
    let (text, advice) = match row.destination {
        Destination::Sidecar => (
            "nothing listens on the port of the sidecar",
            "read the log of the sidecar, with --previous if it was restarted",
        ),
        _ => ("nothing listens on the declared port", advice::of_reason(Reason::Refused)),
    };
    text.clone_into(&mut row.text);
    advice.clone_into(&mut row.advice);
}

/// Concludes from the container's status and the events what kubelet sees.
fn from_kubelet(row: &mut ProbeRow, context: ProbeContext<'_>, events: &[Event]) {
    let ProbeContext { container, kind, .. } = context;
    let last = failures::last_event(container.name, kind, events);
    let is_failing = match kind {
        ProbeKind::Readiness => !container.is_ready(),
        ProbeKind::Startup => !container.is_started(),
        ProbeKind::Liveness | ProbeKind::PreStop | ProbeKind::PostStart => false,
    };
    let is_discarded = failures::are_errors(container.name, kind, events);
    match last {
        Some(event) if is_failing => {
            fails(row, context.of_event(event));
            row.is_discarded = is_discarded;
        }
        Some(event)
            if kind == ProbeKind::Liveness
                && is_discarded
                && failures::is_current(context.situation, container, event) =>
        {
            fails(row, context.of_event(event));
            row.is_discarded = true;
            row.state = State::Unknown;
        }
        _ if kind == ProbeKind::Readiness && container.is_ready() => {
            row.state = State::Passing;
            "kubelet counts it as passed".clone_into(&mut row.text);
        }
        _ if kind == ProbeKind::Liveness && last.is_none() => {
            row.state = State::Passing;
            "no failure recorded".clone_into(&mut row.text);
        }
        _ => "not known".clone_into(&mut row.text),
    }
}

/// Returns true if a rewritten probe of this container is sent to the path of another one.
pub(crate) fn is_copied(container: &str, sent: Probe<'_>) -> bool {
    rewritten_path(sent).is_some_and(|path| path.container() != container || path.kind() != sent.kind)
}
