//! The `spec.probe` of a WorkloadGroup, which is the probe of a virtual machine: defaults and
//! validation.
//!
//! Source: `ReadinessProbe` in Istio's `networking/v1alpha3/workload_group.proto`. The agent's
//! file, the discovery server and its updates to the agent are read by the same code, so the error
//! texts are the same. The agent runs the probe.

mod http_get;

use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::fields::{self, Checked, Findings, Object};
pub use http_get::WorkloadHttpGet;
use probe::{HandlerField, HandlerKind, ports};

/// The path of the probe in its document.
const PATH: &str = "spec.probe";
/// The handlers, in the order in which errors list them: `exec`, which is `None`, and each kind of
/// request over the network.
const HANDLERS: [Option<HandlerKind>; HandlerKind::ALL.len() + 1] =
    [Some(HandlerKind::HttpGet), Some(HandlerKind::TcpSocket), None, Some(HandlerKind::Grpc)];
/// The other fields of the probe.
const SETTINGS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
/// The maximum length of a gRPC service name, in bytes.
const SERVICE_BYTES: usize = 256;

/// The probe of a virtual machine, validated and with all defaults set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadProbe {
    /// The time from the agent's start to the first probe; 0 if absent.
    pub initial_delay: Duration,
    /// The timeout for connect, TLS, request and redirects together; 1 s if absent or 0.
    pub timeout: Duration,
    /// The time from the start of one probe to the start of the next; 10 s if absent or 0.
    pub period: Duration,
    /// The thresholds; 1 success and 3 failures if absent or 0.
    pub thresholds: Thresholds,
    pub handler: WorkloadHandler,
}

/// The number of consecutive equal outcomes that change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// The number of successes that change the state to Healthy.
    pub success: NonZeroU32,
    /// The number of failures that change the state to Unhealthy. The default is 3 as in Kubernetes
    /// and Istio's reference: a single lost packet must not remove all endpoints of a service.
    pub failure: NonZeroU32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadHandler {
    /// A GET whose status decides.
    HttpGet(WorkloadHttpGet),
    /// An established connection is a success.
    TcpSocket {
        /// The port; never a port of the proxy.
        port: NonZeroU16,
        /// An IP address or a DNS name; the instance IP if absent.
        host: Option<String>,
    },
    /// A call of `grpc.health.v1.Health/Check` in plaintext to the instance IP.
    Grpc {
        /// The port; never a port of the proxy.
        port: NonZeroU16,
        /// The name of the service, at most 256 bytes; empty for the whole server.
        service: String,
    },
    /// A command whose exit code decides.
    Exec {
        /// The program and its arguments: at least one element, none empty, none with NUL.
        command: Vec<String>,
    },
}

impl WorkloadHandler {
    /// Returns `http`, `https`, `tcp`, `grpc` or `exec`, for metrics and texts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::HttpGet(http) => http.scheme.word(),
            Self::TcpSocket { .. } => "tcp",
            Self::Grpc { .. } => "grpc",
            Self::Exec { .. } => "exec",
        }
    }

    /// Returns the kind of request over the network and its port; `None` for a command.
    pub fn network(&self) -> Option<(HandlerKind, NonZeroU16)> {
        match self {
            Self::HttpGet(http) => Some((HandlerKind::HttpGet, http.port)),
            Self::TcpSocket { port, .. } => Some((HandlerKind::TcpSocket, *port)),
            Self::Grpc { port, .. } => Some((HandlerKind::Grpc, *port)),
            Self::Exec { .. } => None,
        }
    }
}

impl WorkloadProbe {
    /// Parses `spec.probe`. The error lists everything that is wrong; each line begins with
    /// `spec.probe`.
    pub fn parse(value: &Value) -> Result<Checked<Self>, Vec<String>> {
        let mut findings = Findings::default();
        let probe = Self::read(value, &mut findings);
        findings.checked(probe)
    }

    /// Reads the probe as part of a larger document.
    pub(crate) fn read(value: &Value, findings: &mut Findings) -> Option<Self> {
        let object = Object::new(value, PATH, findings)?;
        let known: Vec<&str> = SETTINGS.into_iter().chain(HANDLERS.map(handler_name)).collect();
        object.warn_unknown(&known, findings);
        let seconds =
            |name, default, findings: &mut Findings| u64::from(object.int32(name, default, findings));
        let initial_delay = seconds("initialDelaySeconds", 0, findings);
        let timeout = seconds("timeoutSeconds", 1, findings);
        let period = seconds("periodSeconds", 10, findings);
        if timeout > period {
            let text =
                format!("{timeout} s is longer than the period of {period} s, so probes start less often");
            findings.warn(&object.field_path("timeoutSeconds"), text);
        }
        let count = |name, default, findings: &mut Findings| {
            NonZeroU32::new(object.int32(name, default, findings)).unwrap_or(NonZeroU32::MIN)
        };
        let thresholds = Thresholds {
            success: count("successThreshold", 1, findings),
            failure: count("failureThreshold", 3, findings),
        };
        Some(Self {
            initial_delay: Duration::from_secs(initial_delay),
            timeout: Duration::from_secs(timeout),
            period: Duration::from_secs(period),
            thresholds,
            handler: handler(&object, findings)?,
        })
    }

    /// Returns the probe in Istio's shape with every default written out; `parse` returns an equal
    /// probe.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let numbers = [
            self.initial_delay.as_secs(),
            self.timeout.as_secs(),
            self.period.as_secs(),
            self.thresholds.success.get().into(),
            self.thresholds.failure.get().into(),
        ];
        for (name, number) in SETTINGS.into_iter().zip(numbers) {
            fields.insert(name.to_owned(), number.into());
        }
        let handler = match &self.handler {
            WorkloadHandler::HttpGet(http) => http.to_json(),
            WorkloadHandler::TcpSocket { port, host: None } => json!({ "port": port.get() }),
            WorkloadHandler::TcpSocket { port, host } => json!({ "port": port.get(), "host": host }),
            WorkloadHandler::Grpc { port, service } => json!({ "port": port.get(), "service": service }),
            WorkloadHandler::Exec { command } => json!({ "command": command }),
        };
        fields.insert(handler_name(self.handler.network().map(|(kind, _)| kind)).to_owned(), handler);
        Value::Object(fields)
    }
}

fn handler_name(kind: Option<HandlerKind>) -> &'static str {
    kind.map_or("exec", HandlerKind::name)
}

/// Requires exactly one handler. If there are several, all are read, so that all their errors are
/// listed.
fn handler(object: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    let found: Vec<_> =
        HANDLERS.into_iter().filter(|kind| object.contains_key(handler_name(*kind))).collect();
    if found.len() != 1 {
        let names: Vec<&str> = found.iter().copied().map(handler_name).collect();
        let words = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let all = HANDLERS.map(handler_name).join(", ");
        let text = format!("exactly one of {all} is required, found {words}");
        findings.error(object.path(), text);
    }
    let mut handler = None;
    for kind in found {
        let name = handler_name(kind);
        if object.value(name).is_none() {
            findings.error(&object.field_path(name), "must not be empty");
            continue;
        }
        let Some(fields) = object.object(name, findings) else { continue };
        let known = kind.map_or_else(
            || vec!["command"],
            |kind| kind.kubernetes_fields().map(HandlerField::name).collect(),
        );
        fields.warn_unknown(&known, findings);
        handler = match kind {
            Some(HandlerKind::HttpGet) => {
                WorkloadHttpGet::read(&fields, findings).map(WorkloadHandler::HttpGet)
            }
            Some(HandlerKind::TcpSocket) => tcp_socket(&fields, findings),
            Some(HandlerKind::Grpc) => grpc(&fields, findings),
            None => exec(&fields, findings),
        };
    }
    handler
}

fn tcp_socket(fields: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    let host = http_get::host(fields, findings);
    Some(WorkloadHandler::TcpSocket { port: port(fields, findings)?, host })
}

fn grpc(fields: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    let service = fields.string("service", findings);
    if service.len() > SERVICE_BYTES {
        findings.error(&fields.field_path("service"), format_args!("must be at most {SERVICE_BYTES} bytes"));
    }
    Some(WorkloadHandler::Grpc { port: port(fields, findings)?, service: service.to_owned() })
}

fn exec(fields: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    let before = findings.errors.len();
    let elements = fields.list("command", findings);
    if elements.is_empty() && findings.errors.len() == before {
        findings.error(&fields.field_path("command"), "must have at least one element");
    }
    let mut command = Vec::new();
    for (path, value) in elements {
        match fields::string(value, &path, findings) {
            Some("") => findings.error(&path, "must not be empty"),
            Some(text) if text.contains('\0') => findings.error(&path, "must not contain NUL"),
            Some(text) => command.push(text.to_owned()),
            None => {}
        }
    }
    Some(WorkloadHandler::Exec { command })
}

/// Returns a port that does not belong to the proxy.
fn port(fields: &Object, findings: &mut Findings) -> Option<NonZeroU16> {
    let port = fields.port("port", findings)?;
    if ports::PROXY_PORTS.contains(&port.get()) {
        findings.error(&fields.field_path("port"), format_args!("{port} belongs to the proxy"));
    }
    Some(port)
}

#[cfg(test)]
mod tests;
