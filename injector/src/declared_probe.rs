//! A declared probe or lifecycle hook with its handler and Kubernetes' defaults, read from the
//! untouched JSON value.

use probe::{HandlerField, HandlerKind, ProbeKind};
use serde_json::Value;

use crate::pod;

/// The numbers of a probe that have a default.
pub const NUMBERS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
/// The number of a probe whose default is that of the Pod.
pub const GRACE_PERIOD: &str = "terminationGracePeriodSeconds";

/// A declared probe or hook. A number that is absent, 0 or of another type has its default.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    pub kind: ProbeKind,
    pub value: &'a Value,
}

/// The action of a probe or hook, with its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Handler<'a> {
    /// A request over the network, which the filter can send.
    Network(HandlerKind, &'a Value),
    Exec(&'a Value),
    Sleep(&'a Value),
    /// The field of a handler that is misspelt, or of a newer version of Kubernetes.
    Unknown(&'a str),
}

/// Returns the handlers of a probe or hook in Kubernetes' types.
pub fn handler_names(kind: ProbeKind) -> Vec<&'static str> {
    let network = network_kinds(kind).map(HandlerKind::name);
    ["exec"].into_iter().chain(network).chain(kind.is_hook().then_some("sleep")).collect()
}

fn network_kinds(kind: ProbeKind) -> impl Iterator<Item = HandlerKind> {
    HandlerKind::ALL.into_iter().filter(move |handler| handler.is_of_hooks() || !kind.is_hook())
}

impl<'a> Handler<'a> {
    /// Returns the field's name, for example `httpGet`.
    pub fn name(self) -> &'a str {
        match self {
            Self::Network(kind, _) => kind.name(),
            Self::Exec(_) => "exec",
            Self::Sleep(_) => "sleep",
            Self::Unknown(name) => name,
        }
    }

    /// Returns the port, if it is set.
    pub fn port(self) -> Option<&'a Value> {
        match self {
            Self::Network(_, fields) => pod::field(fields, "port"),
            Self::Exec(_) | Self::Sleep(_) | Self::Unknown(_) => None,
        }
    }

    /// Returns the port if it is a text, which kubelet looks up in the ports of the container.
    pub fn port_name(self) -> Option<&'a str> {
        let is_named = matches!(self, Self::Network(kind, _) if kind.has(HandlerField::Port));
        self.port().filter(|_| is_named)?.as_str()
    }

    /// Returns the host, if it is set.
    pub fn host(self) -> Option<&'a str> {
        let Self::Network(kind, fields) = self else { return None };
        let host = kind.has(HandlerField::Host).then(|| pod::text(fields, "host"));
        host.filter(|host| !host.is_empty())
    }

    /// Returns the words of an exec command.
    pub fn command(self) -> impl Iterator<Item = &'a str> {
        let command = match self {
            Self::Exec(fields) => pod::list(fields, "command"),
            Self::Network(..) | Self::Sleep(_) | Self::Unknown(_) => &[],
        };
        command.iter().filter_map(Value::as_str)
    }
}

impl<'a> Probe<'a> {
    /// Returns the handlers that are set; a valid probe has one. A field that is no setting and
    /// holds an object counts as an unknown handler if there is no other.
    pub fn handlers(self) -> Vec<Handler<'a>> {
        let field = |name: &str| pod::field(self.value, name);
        let mut handlers: Vec<Handler> = field("exec").map(Handler::Exec).into_iter().collect();
        handlers.extend(
            network_kinds(self.kind).filter_map(|kind| Some(Handler::Network(kind, field(kind.name())?))),
        );
        handlers.extend(field("sleep").filter(|_| self.kind.is_hook()).map(Handler::Sleep));
        if handlers.is_empty() {
            let mut fields = self.value.as_object().into_iter().flatten();
            let unknown = fields.find(|(name, value)| {
                value.is_object() && !NUMBERS.contains(&name.as_str()) && *name != GRACE_PERIOD
            });
            handlers.extend(unknown.map(|(name, _)| Handler::Unknown(name)));
        }
        handlers
    }

    /// Returns the handler; `None` if there is none or several.
    pub fn handler(self) -> Option<Handler<'a>> {
        match self.handlers().as_slice() {
            [handler] => Some(*handler),
            _ => None,
        }
    }

    fn number(self, field: &str, default: u64) -> u64 {
        self.value[field].as_u64().filter(|number| *number > 0).unwrap_or(default)
    }

    /// Returns the seconds from the start of the container to the first probe.
    pub fn initial_delay(self) -> u64 {
        self.number("initialDelaySeconds", 0)
    }

    pub fn period(self) -> u64 {
        self.number("periodSeconds", 10)
    }

    pub fn timeout(self) -> u64 {
        self.number("timeoutSeconds", 1)
    }

    pub fn failure_threshold(self) -> u64 {
        self.number("failureThreshold", 3)
    }

    /// Returns the seconds after which continuous failures take effect: the period times the
    /// failure threshold.
    pub fn tolerance(self) -> u64 {
        self.period().saturating_mul(self.failure_threshold())
    }

    /// Returns the shortest pause of the application, in seconds, that can fail the probe as often
    /// as the failure threshold: a pause that begins just before a probe, in which each probe waits
    /// for its timeout.
    pub fn shortest_fatal_pause(self) -> u64 {
        let interval = self.period().max(self.timeout());
        interval.saturating_mul(self.failure_threshold() - 1).saturating_add(self.timeout())
    }
}

#[cfg(test)]
mod tests;
