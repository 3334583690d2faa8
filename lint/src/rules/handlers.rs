//! Rules about what a probe or hook does, one probe at a time.

use injector::warning::quote;
use injector::{Container, Handler, HandlerField, HandlerKind, Probe, Role, pod};
use serde_json::{Value, json};

use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
use crate::rule::{
    EXEC_IN_MESH, HOST, SHORT_TIMEOUT, TCP_KNOWN_PROTOCOL, TIMEOUT_ABOVE_PERIOD, UNDECLARED_PORT,
};
use crate::rules::validation;

/// Prefixes of port names that name a protocol over HTTP, as in Istio.
const PROTOCOLS: [&str; 6] = ["http", "https", "http2", "h2c", "grpc", "grpcs"];

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    for container in pod.running() {
        for probe in container.probes() {
            let Some(handler) = probe.handler() else { continue };
            check_host(pod, container, probe, handler, findings);
            check_timeout(container, probe, handler, findings);
            check_declared(pod, container, probe, handler, findings);
            check_exec(pod, container, probe, handler, findings);
            check_tcp(container, probe, handler, findings);
        }
        for hook in container.hooks() {
            if let Some(handler) = hook.handler() {
                check_host(pod, container, hook, handler, findings);
            }
        }
    }
}

/// In a Pod with the network of the node, the loopback address is that of the Pod.
fn check_host(pod: &PodView, container: &Container, probe: Probe, handler: Handler, findings: &mut Findings) {
    let is_own = |host: &str| pod.host_network && matches!(host, "127.0.0.1" | "::1" | "localhost");
    if let Some(host) = handler.host().filter(|host| !is_own(host)) {
        let message = format!("kubelet connects to {} and not to the Pod", quote(&json!(host)));
        findings.add_at(
            &HOST,
            Place::of_probe(container, probe),
            &format!("{}.host", handler.name()),
            message,
        );
    }
}

fn check_timeout(container: &Container, probe: Probe, handler: Handler, findings: &mut Findings) {
    let (timeout, period) = (probe.timeout(), probe.period());
    let place = Place::of_probe(container, probe);
    let slow = match handler {
        Handler::Network(kind, fields)
            if kind.has(HandlerField::Scheme) && pod::text(fields, "scheme") == "HTTPS" =>
        {
            Some("an HTTPS probe".to_owned())
        }
        Handler::Network(kind, _) => {
            let protocol = kind.protocol().filter(|_| kind.has_handshake());
            protocol.map(|protocol| format!("a {protocol} probe"))
        }
        Handler::Exec(_) => Some("an exec probe".to_owned()),
        Handler::Sleep(_) | Handler::Unknown(_) => None,
    };
    if let Some(slow) = slow.filter(|_| timeout == 1) {
        let default = if probe.value["timeoutSeconds"].is_number() { "" } else { ", by default" };
        let message = format!("timeoutSeconds is 1{default}, which is short for {slow}");
        findings.add_at(&SHORT_TIMEOUT, place, "timeoutSeconds", message);
    }
    if timeout > period {
        let message = format!("timeoutSeconds {timeout} is above periodSeconds {period}");
        findings.add_at(&TIMEOUT_ABOVE_PERIOD, place, "timeoutSeconds", message);
    }
}

/// Any container of the Pod may declare the port: they share its address.
fn check_declared(
    pod: &PodView,
    container: &Container,
    probe: Probe,
    handler: Handler,
    findings: &mut Findings,
) {
    let Some(port @ Value::Number(number)) = handler.port() else { return };
    if validation::is_rejected_port(port) {
        return;
    }
    let declared = pod
        .containers
        .iter()
        .flat_map(|container| container.ports())
        .any(|declared| declared["containerPort"].as_f64() == number.as_f64());
    if !declared && handler.host().is_none() {
        let field = format!("{}.port", handler.name());
        let message = format!("no container declares port {number}");
        findings.add_at(&UNDECLARED_PORT, Place::of_probe(container, probe), &field, message);
    }
}

fn check_exec(pod: &PodView, container: &Container, probe: Probe, handler: Handler, findings: &mut Findings) {
    if pod.meshed && container.role == Role::Application && matches!(handler, Handler::Exec(_)) {
        let message = "the command does not connect through the proxy of the mesh";
        findings.add_at(&EXEC_IN_MESH, Place::of_probe(container, probe), "exec", message);
    }
}

fn check_tcp(container: &Container, probe: Probe, handler: Handler, findings: &mut Findings) {
    let Handler::Network(HandlerKind::TcpSocket, _) = handler else { return };
    let Some(number) = handler.port().and_then(|port| container.port_number(port)) else { return };
    let declared = container.ports().iter().find(|port| port["containerPort"] == number);
    let by_name = declared.map(pod::name).filter(|name| {
        let prefix = name.split('-').next().unwrap_or_default();
        PROTOCOLS.contains(&prefix)
    });
    let by_probe = container.probes().find(|other| {
        let handler = other.handler().filter(|handler| shows_protocol(*handler) && handler.host().is_none());
        handler.and_then(Handler::port).and_then(|port| container.port_number(port)) == Some(number)
    });
    let evidence = match (by_name, by_probe) {
        (Some(name), _) => format!("port {number} is called {name}"),
        (None, Some(other)) => {
            let handler = other.handler().map_or("", Handler::name);
            format!("the {} uses {handler} on port {number}", other.kind.field())
        }
        (None, None) => return,
    };
    let message = format!("{evidence}, but this probe only opens a connection");
    findings.add_at(&TCP_KNOWN_PROTOCOL, Place::of_probe(container, probe), "tcpSocket", message);
}

/// Returns true for a handler that requires a protocol over TCP.
fn shows_protocol(handler: Handler) -> bool {
    matches!(handler, Handler::Network(kind, _) if kind.protocol().is_some())
}
