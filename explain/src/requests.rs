//! What to read about a Pod, once the Pod itself is known.

use injector::settings::STATUS_PORT;
use injector::{Handler, HandlerKind, Probe, ProbeKind};
use probe::path::ProbePath;
use serde_json::Value;

use crate::container::{Container, READY_PORT, Role};

/// The probes in the order in which kubelet sends them first. Lifecycle hooks are never requested,
/// because they change the application's state.
pub(crate) const PROBES: [ProbeKind; 3] = [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness];

/// A probe to request through the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    pub container: String,
    pub kind: ProbeKind,
    /// What follows `/api/v1/namespaces/NAMESPACE/pods/`.
    pub path: String,
    /// The timeout with which kubelet sends it, in seconds.
    pub timeout_seconds: u64,
}

/// The end of the log of a container's last complete run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    pub container: String,
    /// True if the container runs again, so that its current log is that of another run.
    pub previous: bool,
}

/// What to read about a Pod besides the Pod itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// The name of its node.
    pub node: Option<String>,
    pub probes: Vec<ProbeRequest>,
    /// Paths of the sidecar's readiness and metrics, as in [`ProbeRequest::path`].
    pub readiness: Option<String>,
    pub metrics: Option<String>,
    /// The sidecar's container, whose log is read.
    pub sidecar_log: Option<String>,
    /// One for each container that was restarted.
    pub previous_logs: Vec<LogRequest>,
}

impl Requests {
    pub fn of(pod: &Value) -> Self {
        let containers = Container::all(pod);
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let has_address = pod["status"]["podIP"].is_string();
        let sidecar = containers.iter().find(|container| container.role == Role::Proxy);
        let running = sidecar.filter(|sidecar| has_address && sidecar.is_running());
        let crashed =
            containers.iter().filter(|container| container.restarts() > 0 || container.is_crashing());
        Self {
            node: pod["spec"]["nodeName"].as_str().map(str::to_owned),
            probes: if has_address { probes(name, &containers) } else { Vec::new() },
            readiness: running.map(|_| format!("{name}:{READY_PORT}/proxy/healthz/ready?verbose")),
            metrics: running.map(|_| format!("{name}:{}/proxy/stats/prometheus", status_port(&containers))),
            sidecar_log: sidecar
                .filter(|sidecar| sidecar.is_running())
                .map(|sidecar| sidecar.name.to_owned()),
            previous_logs: crashed
                .map(|container| LogRequest {
                    container: container.name.to_owned(),
                    previous: container.is_running(),
                })
                .collect(),
        }
    }
}

/// Returns the port to which the rewritten probes of the Pod go.
fn status_port(containers: &[Container<'_>]) -> u64 {
    let all = containers.iter().flat_map(|container| container.probes());
    let mut rewritten = all.filter(|probe| is_rewritten(*probe));
    rewritten.find_map(|probe| probe.handler()?.port()?.as_u64()).unwrap_or(STATUS_PORT.into())
}

/// Returns true if a probe goes to the filter.
pub(crate) fn is_rewritten(probe: Probe<'_>) -> bool {
    rewritten_path(probe).is_some()
}

/// Returns the path of a probe that goes to the filter.
pub(crate) fn rewritten_path(probe: Probe<'_>) -> Option<ProbePath> {
    ProbePath::parse(probe.value["httpGet"]["path"].as_str()?)
}

/// Returns the probes that kubelet sends now and that the API server can send too. Those of the
/// sidecar are left out: its readiness says more.
fn probes(pod: &str, containers: &[Container<'_>]) -> Vec<ProbeRequest> {
    let others =
        containers.iter().filter(|container| container.role != Role::Proxy && container.is_running());
    let all = others.flat_map(|container| PROBES.map(|kind| (container, kind)));
    all.filter(|(container, kind)| is_sent(container, *kind))
        .filter_map(|(container, kind)| {
            let probe = container.probe(kind)?;
            let path = proxy_path(pod, container, probe.handler()?)?;
            let timeout_seconds = probe.timeout();
            Some(ProbeRequest { container: container.name.to_owned(), kind, path, timeout_seconds })
        })
        .collect()
}

/// Returns true if kubelet sends this probe at present: the startup probe first, the others once it
/// has succeeded.
pub(crate) fn is_sent(container: &Container<'_>, kind: ProbeKind) -> bool {
    let has_startup = container.probe(ProbeKind::Startup).is_some();
    container.is_running()
        && match kind {
            ProbeKind::Startup => !container.is_started(),
            ProbeKind::PreStop | ProbeKind::PostStart => false,
            ProbeKind::Liveness | ProbeKind::Readiness => !has_startup || container.is_started(),
        }
}

/// Returns the path of a probe in the API server's Pod proxy, which sends HTTP. A probe with another
/// host or with headers cannot be sent that way.
fn proxy_path(pod: &str, container: &Container<'_>, handler: Handler<'_>) -> Option<String> {
    let Handler::Network(HandlerKind::HttpGet, http) = handler else { return None };
    if http["host"].is_string() || http["httpHeaders"].is_array() {
        return None;
    }
    let port = container.port_number(&http["port"])?;
    let scheme = if http["scheme"] == "HTTPS" { "https:" } else { "" };
    let path = http["path"].as_str().unwrap_or("/").trim_start_matches('/');
    // The proxy would decode or clean any other path.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~?=&".contains(&byte);
    let is_clean = !path.split('/').any(|segment| matches!(segment, "" | "." | "..")) || path.is_empty();
    (path.bytes().all(plain) && is_clean).then(|| format!("{scheme}{pod}:{port}/proxy/{path}"))
}

#[cfg(test)]
mod tests;
