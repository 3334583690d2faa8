//! Rules about probes that restart containers which would recover.

use injector::warning::quote;
use injector::{Container, Handler, HandlerField, HandlerKind, Probe, ProbeKind, pod};
use serde_json::{Value, json};

use crate::Options;
use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
use crate::rule::{
    DEPENDENCY_IN_LIVENESS, LONG_INITIAL_DELAY, SAME_HANDLER, SHORT_TOLERANCE, STRICT_LIVENESS,
};

/// The longest initial delay in seconds that is accepted without a startupProbe.
const LONGEST_DELAY: u64 = 30;
/// Words of a path that name dependencies, or readiness.
const DEPENDENCY_WORDS: [&str; 24] = [
    "ready",
    "readyz",
    "readiness",
    "dependency",
    "dependencies",
    "deps",
    "downstream",
    "upstream",
    "upstreams",
    "db",
    "database",
    "sql",
    "mysql",
    "postgres",
    "postgresql",
    "mongo",
    "mongodb",
    "redis",
    "kafka",
    "rabbitmq",
    "elasticsearch",
    "full",
    "deep",
    "backends",
];
/// Paths that are known to contain the state of dependencies.
const DEPENDENCY_PATHS: [&str; 2] = ["/actuator/health", "/manage/health"];

pub(super) fn check(pod: &PodView, options: &Options, findings: &mut Findings) {
    for container in pod.running() {
        check_delay(container, findings);
        let Some(liveness) = container.probe(ProbeKind::Liveness) else { continue };
        check_pause(container, liveness, options, findings);
        check_path(container, liveness, findings);
        if let Some(readiness) = container.probe(ProbeKind::Readiness) {
            check_readiness(container, liveness, readiness, findings);
        }
    }
}

fn check_delay(container: &Container, findings: &mut Findings) {
    if container.probe(ProbeKind::Startup).is_some() {
        return;
    }
    for probe in container.probes() {
        let delay = probe.initial_delay();
        if delay > LONGEST_DELAY {
            let message = format!("initialDelaySeconds is {delay}, and there is no startupProbe");
            findings.add_at(
                &LONG_INITIAL_DELAY,
                Place::of_probe(container, probe),
                "initialDelaySeconds",
                message,
            );
        }
    }
}

fn check_pause(container: &Container, liveness: Probe, options: &Options, findings: &mut Findings) {
    let Some(expected) = options.expect_pause else { return };
    let shortest = liveness.shortest_fatal_pause();
    if expected.as_secs_f64() >= shortest as f64 {
        let message = format!(
            "a pause of {shortest} s can restart the container, and a pause of {} s is expected",
            expected.as_secs_f64()
        );
        findings.add_at(&SHORT_TOLERANCE, Place::of_probe(container, liveness), "failureThreshold", message);
    }
}

fn check_path(container: &Container, liveness: Probe, findings: &mut Findings) {
    let Some(Handler::Network(HandlerKind::HttpGet, fields)) = liveness.handler() else { return };
    let path = pod::text(fields, "path").to_ascii_lowercase();
    let without_query = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    let mut words = path.split(|char: char| !char.is_ascii_alphanumeric());
    let evidence = if DEPENDENCY_PATHS.contains(&without_query) {
        Some("reports the state of all dependencies".to_owned())
    } else {
        let word = words.find(|word| DEPENDENCY_WORDS.contains(word));
        word.map(|word| format!("contains \"{word}\", as paths do that check dependencies"))
    };
    if let Some(evidence) = evidence {
        let message = format!("path {} {evidence}", quote(&json!(pod::text(fields, "path"))));
        findings.add_at(
            &DEPENDENCY_IN_LIVENESS,
            Place::of_probe(container, liveness),
            "httpGet.path",
            message,
        );
    }
}

fn check_readiness(container: &Container, liveness: Probe, readiness: Probe, findings: &mut Findings) {
    let place = Place::of_probe(container, liveness);
    let (live, ready) = (liveness.tolerance(), readiness.tolerance());
    let is_same = match (liveness.handler(), readiness.handler()) {
        (Some(liveness), Some(readiness)) => same_handler(container, liveness, readiness),
        _ => false,
    };
    if is_same && live <= ready {
        let message = format!(
            "the same handler as the readinessProbe; liveness tolerates failures for {live} s, readiness for {ready} s"
        );
        findings.add_at(&SAME_HANDLER, place, "", message);
    }
    if live < ready {
        let message = format!(
            "continuous failures restart the container after {live} s, and make it unready after {ready} s"
        );
        findings.add_at(&STRICT_LIVENESS, place, "failureThreshold", message);
    }
}

/// Compares what the handlers request: the port as a number, the path with its default, and so on.
fn same_handler(container: &Container, first: Handler, second: Handler) -> bool {
    let port = |handler: Handler| handler.port().map(|port| (container.port_number(port), port.clone()));
    let same_port = match (port(first), port(second)) {
        (Some((Some(first), _)), Some((Some(second), _))) => first == second,
        (first, second) => first == second,
    };
    let rest = match (first, second) {
        (Handler::Network(kind, first), Handler::Network(other, second)) => {
            let mut fields = kind.kubernetes_fields().filter(|field| !field.is_port());
            kind == other && fields.all(|field| same_value(field, first, second))
        }
        (Handler::Exec(_), Handler::Exec(_)) => first.command().eq(second.command()),
        (Handler::Network(..) | Handler::Exec(_) | Handler::Sleep(_) | Handler::Unknown(_), _) => false,
    };
    same_port && rest
}

/// Compares a field of two handlers, which is a text or a list.
fn same_value(field: HandlerField, first: &Value, second: &Value) -> bool {
    let text = |fields| match pod::text(fields, field.name()) {
        "" => field.default_text(),
        text => text,
    };
    text(first) == text(second) && pod::list(first, field.name()) == pod::list(second, field.name())
}
