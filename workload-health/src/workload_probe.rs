//! `WorkloadGroup.spec.probe`: the probe of a virtual machine, with its defaults and its checks.
//!
//! Istio's schema (`networking/v1alpha3/workload_group.proto`, `ReadinessProbe`). One reading for a file, for the discovery server
//! and for a push, so the texts are the same everywhere. What performs the probe is not here.

mod http_get;

use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::fields::{self, Checked, Findings, Object};
pub use http_get::WorkloadHttpGet;
use probe::ports;

/// Where a probe stands in its document.
const PATH: &str = "spec.probe";
/// The handlers, in the order in which errors list them.
const HANDLERS: [&str; 4] = ["httpGet", "tcpSocket", "exec", "grpc"];
/// Everything beside the handlers.
const SETTINGS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
/// The longest name of a service, in bytes.
const SERVICE_BYTES: usize = 256;

/// A checked probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadProbe {
    /// From the agent's start to the first probe; 0 where absent.
    pub initial_delay: Duration,
    /// For connect, TLS, request and redirects together; 1 s where absent or 0.
    pub timeout: Duration,
    /// From start to start; 10 s where absent or 0.
    pub period: Duration,
    /// 1 and 3 where absent or 0.
    pub thresholds: Thresholds,
    /// What is done.
    pub handler: WorkloadHandler,
}

/// How many equal outcomes in a row change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// To Healthy.
    pub success: NonZeroU32,
    /// To Unhealthy. 3 where absent, as Kubernetes has it and Istio's reference says; one lost packet must not empty a service.
    pub failure: NonZeroU32,
}

/// What a probe does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadHandler {
    /// A GET whose status decides.
    HttpGet(WorkloadHttpGet),
    /// A connection is enough.
    TcpSocket {
        /// None of the proxy's own.
        port: NonZeroU16,
        /// An IP address or a DNS name; absent: the instance IP.
        host: Option<String>,
    },
    /// `grpc.health.v1.Health/Check`, in plaintext, at the instance IP.
    Grpc {
        /// None of the proxy's own.
        port: NonZeroU16,
        /// Empty: the whole server. At most 256 bytes.
        service: String,
    },
    /// A command whose exit code decides.
    Exec {
        /// At least one element, none empty, none with a NUL.
        command: Vec<String>,
    },
}

impl WorkloadHandler {
    /// `http`, `https`, `tcp`, `grpc` or `exec`, for metrics and texts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::HttpGet(http) => http.scheme.word(),
            Self::TcpSocket { .. } => "tcp",
            Self::Grpc { .. } => "grpc",
            Self::Exec { .. } => "exec",
        }
    }

    /// The port that is dialled.
    pub fn port(&self) -> Option<NonZeroU16> {
        match self {
            Self::HttpGet(http) => Some(http.port),
            Self::TcpSocket { port, .. } | Self::Grpc { port, .. } => Some(*port),
            Self::Exec { .. } => None,
        }
    }

    /// Where the port stands: `spec.probe.grpc.port`.
    pub fn port_path(&self) -> Option<&'static str> {
        match self {
            Self::HttpGet(_) => Some("spec.probe.httpGet.port"),
            Self::TcpSocket { .. } => Some("spec.probe.tcpSocket.port"),
            Self::Grpc { .. } => Some("spec.probe.grpc.port"),
            Self::Exec { .. } => None,
        }
    }
}

impl WorkloadProbe {
    /// Reads `spec.probe`. `Err`: everything that is wrong, each line begins with `spec.probe`.
    pub fn parse(value: &Value) -> Result<Checked<Self>, Vec<String>> {
        let mut findings = Findings::default();
        let probe = Self::read(value, &mut findings);
        findings.checked(probe)
    }

    /// The same among the findings of a larger document.
    pub(crate) fn read(value: &Value, findings: &mut Findings) -> Option<Self> {
        let object = Object::of(value, PATH, findings)?;
        let known: Vec<&str> = SETTINGS.into_iter().chain(HANDLERS).collect();
        object.warn_unknown(&known, findings);
        let seconds =
            |name, default, findings: &mut Findings| u64::from(object.count(name, default, findings));
        let initial_delay = seconds("initialDelaySeconds", 0, findings);
        let timeout = seconds("timeoutSeconds", 1, findings);
        let period = seconds("periodSeconds", 10, findings);
        if timeout > period {
            let text =
                format!("{timeout} s is longer than the period of {period} s, so probes start less often");
            findings.warn(&object.path_of("timeoutSeconds"), text);
        }
        let count = |name, default, findings: &mut Findings| {
            NonZeroU32::new(object.count(name, default, findings)).unwrap_or(NonZeroU32::MIN)
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

    /// Istio's shape with every default written out; `parse` gives the same probe again.
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
        let (name, handler) = match &self.handler {
            WorkloadHandler::HttpGet(http) => ("httpGet", http.to_json()),
            WorkloadHandler::TcpSocket { port, host: None } => ("tcpSocket", json!({ "port": port.get() })),
            WorkloadHandler::TcpSocket { port, host } => {
                ("tcpSocket", json!({ "port": port.get(), "host": host }))
            }
            WorkloadHandler::Grpc { port, service } => {
                ("grpc", json!({ "port": port.get(), "service": service }))
            }
            WorkloadHandler::Exec { command } => ("exec", json!({ "command": command })),
        };
        fields.insert(name.to_owned(), handler);
        Value::Object(fields)
    }
}

/// Exactly one. Each that is there is read, so that all its errors are told.
fn handler(object: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    let found: Vec<&str> = HANDLERS.into_iter().filter(|name| object.mentions(name)).collect();
    if found.len() != 1 {
        let words = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        let text = format!("exactly one of {} is required, found {words}", HANDLERS.join(", "));
        findings.error(object.path(), text);
    }
    let mut handler = None;
    for name in found {
        if object.value(name).is_none() {
            findings.error(&object.path_of(name), "must not be empty");
            continue;
        }
        let Some(fields) = object.object(name, findings) else { continue };
        handler = match name {
            "httpGet" => WorkloadHttpGet::read(&fields, findings).map(WorkloadHandler::HttpGet),
            "tcpSocket" => tcp_socket(&fields, findings),
            "grpc" => grpc(&fields, findings),
            _ => exec(&fields, findings),
        };
    }
    handler
}

fn tcp_socket(fields: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    fields.warn_unknown(&["port", "host"], findings);
    let host = http_get::host(fields, findings);
    Some(WorkloadHandler::TcpSocket { port: port(fields, findings)?, host })
}

fn grpc(fields: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    fields.warn_unknown(&["port", "service"], findings);
    let service = fields.text("service", findings);
    if service.len() > SERVICE_BYTES {
        findings.error(&fields.path_of("service"), format_args!("must be at most {SERVICE_BYTES} bytes"));
    }
    Some(WorkloadHandler::Grpc { port: port(fields, findings)?, service: service.to_owned() })
}

fn exec(fields: &Object, findings: &mut Findings) -> Option<WorkloadHandler> {
    fields.warn_unknown(&["command"], findings);
    let before = findings.errors.len();
    let elements = fields.list("command", findings);
    if elements.is_empty() && findings.errors.len() == before {
        findings.error(&fields.path_of("command"), "must have at least one element");
    }
    let mut command = Vec::new();
    for (path, value) in elements {
        match fields::text(value, &path, findings) {
            Some("") => findings.error(&path, "must not be empty"),
            Some(text) if text.contains('\0') => findings.error(&path, "must not contain NUL"),
            Some(text) => command.push(text.to_owned()),
            None => {}
        }
    }
    Some(WorkloadHandler::Exec { command })
}

/// A port that an application can have.
fn port(fields: &Object, findings: &mut Findings) -> Option<NonZeroU16> {
    let port = fields.port("port", findings)?;
    if ports::ALWAYS.contains(&port.get()) {
        findings.error(&fields.path_of("port"), format_args!("{port} belongs to the proxy"));
    }
    Some(port)
}

#[cfg(test)]
mod tests;
