//! Probes and hooks with Kubernetes' defaults.

use injector::pod;
use serde_json::Value;

/// A declared probe. A field that is absent, 0 or of another type has its default.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    /// `livenessProbe`, `readinessProbe` or `startupProbe`.
    pub name: &'static str,
    pub value: &'a Value,
}

/// A lifecycle hook as a manifest declares it.
#[derive(Clone, Copy)]
pub(crate) struct Hook<'a> {
    /// `postStart` or `preStop`.
    pub name: &'static str,
    pub value: &'a Value,
}

/// The action of a probe or hook, with its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Handler<'a> {
    HttpGet(&'a Value),
    TcpSocket(&'a Value),
    Grpc(&'a Value),
    Exec(&'a Value),
    Sleep(&'a Value),
}

impl<'a> Handler<'a> {
    /// Returns the handler; `None` if there is none or several.
    fn of(value: &'a Value) -> Option<Self> {
        let field = |name| pod::field(value, name);
        let handlers = [
            field("httpGet").map(Self::HttpGet),
            field("tcpSocket").map(Self::TcpSocket),
            field("grpc").map(Self::Grpc),
            field("exec").map(Self::Exec),
            field("sleep").map(Self::Sleep),
        ];
        let mut handlers = handlers.into_iter().flatten();
        handlers.next().filter(|_| handlers.next().is_none())
    }

    /// Returns the field's name, for example `httpGet`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HttpGet(_) => "httpGet",
            Self::TcpSocket(_) => "tcpSocket",
            Self::Grpc(_) => "grpc",
            Self::Exec(_) => "exec",
            Self::Sleep(_) => "sleep",
        }
    }

    /// Returns the port, if the handler has one.
    pub(crate) fn port(self) -> Option<&'a Value> {
        match self {
            Self::HttpGet(fields) | Self::TcpSocket(fields) | Self::Grpc(fields) => {
                pod::field(fields, "port")
            }
            Self::Exec(_) | Self::Sleep(_) => None,
        }
    }

    /// Returns the host, if it is set.
    pub(crate) fn host(self) -> Option<&'a str> {
        match self {
            Self::HttpGet(fields) | Self::TcpSocket(fields) => {
                Some(pod::text(fields, "host")).filter(|host| !host.is_empty())
            }
            Self::Grpc(_) | Self::Exec(_) | Self::Sleep(_) => None,
        }
    }

    /// Returns the words of an exec command.
    pub(crate) fn command(self) -> impl Iterator<Item = &'a str> {
        let command = match self {
            Self::Exec(fields) => pod::list(fields, "command"),
            _ => &[],
        };
        command.iter().filter_map(Value::as_str)
    }
}

impl<'a> Probe<'a> {
    pub(crate) fn handler(self) -> Option<Handler<'a>> {
        Handler::of(self.value)
    }

    fn seconds(self, field: &str, default: u64) -> u64 {
        self.value[field].as_u64().filter(|seconds| *seconds > 0).unwrap_or(default)
    }

    pub(crate) fn initial_delay(self) -> u64 {
        self.seconds("initialDelaySeconds", 0)
    }

    pub(crate) fn period(self) -> u64 {
        self.seconds("periodSeconds", 10)
    }

    pub(crate) fn timeout(self) -> u64 {
        self.seconds("timeoutSeconds", 1)
    }

    pub(crate) fn failure_threshold(self) -> u64 {
        self.seconds("failureThreshold", 3)
    }

    /// Returns the seconds after which continuous failures take effect: the period times the
    /// failure threshold.
    pub(crate) fn tolerance(self) -> u64 {
        self.period().saturating_mul(self.failure_threshold())
    }

    /// Returns the shortest pause of the application, in seconds, that can fail the probe as often
    /// as the failure threshold: a pause that begins just before a probe, in which each probe waits
    /// for its timeout.
    pub(crate) fn shortest_fatal_pause(self) -> u64 {
        let interval = self.period().max(self.timeout());
        interval.saturating_mul(self.failure_threshold() - 1).saturating_add(self.timeout())
    }
}

impl<'a> Hook<'a> {
    pub(crate) fn handler(self) -> Option<Handler<'a>> {
        Handler::of(self.value)
    }
}

#[cfg(test)]
mod tests;
