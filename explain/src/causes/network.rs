//! kubelet does not reach the Pod, though its containers run: its node is cut off from the Pod.

use crate::advice;
use crate::container::{Container, READY_PORT};
use crate::destination::Destination;
use crate::event::Event;
use crate::finding::{Code, Finding};
use crate::probes::{ProbeRow, State, failures};
use crate::situation::ProbeResult;
use crate::view::View;
use crate::wording::probe::ProbeError;
use injector::{Probe, ProbeKind};

/// Where the requests of kubelet end.
struct Blocked<'a> {
    container: &'a str,
    port: String,
    message: &'a str,
    error: ProbeError,
    destination: Destination,
    /// True if the newest failure is no older than two periods.
    is_now: bool,
}

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let is_pending = view.sidecar.as_ref().is_some_and(|sidecar| !sidecar.pending.is_empty());
    if view.is_terminating() || is_pending {
        return Vec::new();
    }
    let rows = view.probes.iter().filter_map(|row| blocked(view, row));
    rows.chain(ready_port(view)).take(1).map(|blocked| finding(view, &blocked)).collect()
}

/// Returns true if this cause has the failure of the probe.
pub(super) fn explains(view: &View<'_>, row: &ProbeRow) -> bool {
    blocked(view, row).is_some()
}

/// Returns true if kubelet does not reach the readiness of the sidecar.
pub(super) fn is_blocked(view: &View<'_>) -> bool {
    ready_port(view).is_some()
}

fn finding(view: &View<'_>, blocked: &Blocked<'_>) -> Finding {
    let Blocked { container, port, message, error, destination, is_now } = blocked;
    let is_reached = api_reaches(view) && !api_fails(view);
    let others = match () {
        () if is_reached => ", though the API server can",
        () if api_fails(view) => ", and the API server cannot either",
        () => "",
    };
    let advice = match error {
        ProbeError::Closed => {
            "the sidecar, or what is before it, closes connections from the node: does --allow-from list its address? Else look for a policy or mutual TLS on this port"
        }
        ProbeError::NodeResources => advice::of_error(*error, *destination).0,
        ProbeError::ConnectTimeout if !is_reached => advice::of_error(*error, *destination).0,
        _ => advice::UNREACHABLE,
    };
    let is_lost = matches!(error, ProbeError::ConnectTimeout | ProbeError::NoResponse);
    let is_certain = *error == ProbeError::NoRoute || (is_lost && is_reached && *is_now);
    let text = match error {
        ProbeError::Closed => format!("the sidecar closes kubelet's connections to port {port}: {message}"),
        _ => format!("kubelet cannot reach port {port} of the Pod{others}: {message}"),
    };
    Finding::broken(Code::Network, text, advice).certain_if(is_certain).about(container)
}

/// Returns the newest failure of a probe if it still lasts, and neither the application nor the
/// sidecar can be the cause.
fn blocked<'a>(view: &'a View<'_>, row: &'a ProbeRow) -> Option<Blocked<'a>> {
    let container = view.containers.iter().find(|container| container.name == row.container)?;
    let is_unready = match row.probe {
        ProbeKind::Readiness => !container.is_ready(),
        ProbeKind::Startup => !container.is_started(),
        ProbeKind::Liveness | ProbeKind::PreStop | ProbeKind::PostStart => false,
    };
    let is_of_pod = matches!(row.destination, Destination::Sidecar | Destination::Application);
    // A response of the API server's request that is no success is another failure.
    let is_other = row.state == State::Failing && row.status.is_some();
    if !is_unready || !is_of_pod || !container.is_running() || is_other {
        return None;
    }
    let event = failures::last_event(container.name, row.probe, &view.events)?;
    let answered = row.state == State::Passing && !row.is_slow() && row.status.is_some();
    let is_proven = |error| match row.destination {
        Destination::Sidecar => error != ProbeError::Refused || answered,
        // An application that was slow or closed may have recovered.
        _ => error == ProbeError::NoResponse,
    };
    let port = row.sent_to.trim_start_matches(':').split('/').next().unwrap_or_default().to_owned();
    let blocked = of_event(view, container, row.probe, event, (row.destination, port))?;
    (blocked.error.is_of_packets() || (answered && is_proven(blocked.error))).then_some(blocked)
}

/// Returns the newest failure of the sidecar's own readiness probe.
fn ready_port<'a>(view: &'a View<'_>) -> Option<Blocked<'a>> {
    let sidecar = view.sidecar_container().filter(|sidecar| sidecar.is_running() && !sidecar.is_ready())?;
    let kinds = [ProbeKind::Readiness, ProbeKind::Startup];
    let (kind, event) = kinds
        .into_iter()
        .find_map(|kind| Some((kind, failures::last_event(sidecar.name, kind, &view.events)?)))?;
    let port = (Destination::Sidecar, READY_PORT.to_string());
    let blocked = of_event(view, sidecar, kind, event, port)?;
    let is_ready = view.sidecar.as_ref().is_some_and(|sidecar| sidecar.reports_ready);
    (blocked.error.is_of_packets() || (is_ready && blocked.error != ProbeError::Refused)).then_some(blocked)
}

fn of_event<'a>(
    view: &View<'_>,
    container: &Container<'a>,
    kind: ProbeKind,
    event: &'a Event,
    (destination, port): (Destination, String),
) -> Option<Blocked<'a>> {
    let age = view.seconds_since(&event.last)?;
    let message = failures::message_of(event);
    let error = ProbeError::of(message);
    let period = container.probe(kind).map_or(10, Probe::period);
    let is_now = age <= period.saturating_mul(2);
    let is_current = failures::is_current(view.situation, container, event);
    (is_current && error.is_of_network()).then_some(Blocked {
        container: container.name,
        port,
        message,
        error,
        destination,
        is_now,
    })
}

/// Returns true if the API server's own requests were answered.
fn api_reaches(view: &View<'_>) -> bool {
    let situation = view.situation;
    let mut results = situation.answers.iter().map(|answer| &answer.result);
    results.any(|result| matches!(result, ProbeResult::Response { .. }))
        || situation.readiness.found().is_some()
        || situation.metrics.found().is_some_and(|metrics| !metrics.is_empty())
}

fn api_fails(view: &View<'_>) -> bool {
    let mut results = view.situation.answers.iter().map(|answer| &answer.result);
    results.any(|result| matches!(result, ProbeResult::Unreachable(_)))
}
