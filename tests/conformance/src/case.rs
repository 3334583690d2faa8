//! One case, as it stands in `tests/conformance/*.yaml`: who asks, and what the application does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bytes::Bytes;
use super::kind::Kind;
use kit::app::tls::Tls;

/// A prober and an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Case {
    /// What it shows; no other case is called so.
    pub name: String,
    /// How kubelet asks.
    pub probe: Probe,
    /// The application.
    #[serde(default, skip_serializing_if = "is_default")]
    pub app: App,
    /// What listens on other ports of the pod, by the name under which `{name}` stands for the port.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, App>,
    /// The pod's address.
    #[serde(default, skip_serializing_if = "is_default")]
    pub family: Family,
    /// The kind of difference that this case is here to show; most show none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<Kind>,
}

impl Case {
    /// Whether any of its requests goes over TLS.
    pub fn uses_tls(&self) -> bool {
        self.probe.is_https() || self.also.values().any(|app| app.tls.is_some())
    }
}

/// A prober in Kubernetes' words. Where `port` is missing it is the application's; in the values `{port}`, `{ip}` and
/// `{address}` stand for the application's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Probe {
    /// `httpGet`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<Value>,
    /// `tcpSocket`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<Value>,
    /// `grpc`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<Value>,
    /// Absent: kubelet's own, 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub timeout_seconds: u16,
}

impl Probe {
    /// The handler's name and value.
    pub fn handler(&self) -> Option<(&'static str, &Value)> {
        let handlers = [("httpGet", &self.http_get), ("tcpSocket", &self.tcp_socket), ("grpc", &self.grpc)];
        handlers.into_iter().find_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// Whether it is an `httpGet` over TLS.
    pub fn is_https(&self) -> bool {
        let scheme = self.http_get.as_ref().and_then(|get| get["scheme"].as_str());
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
    }
}

/// The family of the pod's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// An address of 127.0.0.0/8.
    #[default]
    V4,
    /// `::1`.
    V6,
}

/// What listens on a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct App {
    /// How it listens.
    #[serde(skip_serializing_if = "is_default")]
    pub listens: Listens,
    /// TLS in front of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// What becomes of the connections, in the order in which they come; the last entry holds for all later ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
}

/// How an application listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Listens {
    /// As usual.
    #[default]
    Accepts,
    /// Nobody listens: the connection is refused.
    Not,
    /// The kernel takes connections, the application never does.
    NeverAccepts,
    /// The kernel takes no more: SYN is dropped.
    BacklogFull,
}

/// What is done with so many connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Connection {
    /// How many connections in a row.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: u16,
    /// What is done with each. At the end the sending side is closed, and what still comes is read.
    #[serde(rename = "do")]
    pub steps: Vec<Step>,
}

/// One thing that an application does. In what it writes, `{port}`, `{ip}`, `{address}` and the names of other ports
/// are filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Step {
    /// Reads to the end of an HTTP/1 head.
    Read,
    /// Reads so many bytes at most once.
    Take(usize),
    /// Writes these bytes.
    Write(Bytes),
    /// Writes these bytes again and again.
    Repeat {
        /// What is written.
        bytes: Bytes,
        /// How often.
        times: u32,
    },
    /// Writes these bytes until the other side has enough.
    Endless(Bytes),
    /// Writes byte by byte.
    Drip {
        /// What is written.
        bytes: Bytes,
        /// The pause before each byte, in milliseconds.
        every: u64,
    },
    /// Does nothing for so many milliseconds.
    Wait(u64),
    /// Does nothing until the other side closes.
    Hang,
    /// Closes its sending side and goes on.
    HalfClose,
    /// Closes at once, without a farewell of TLS, even when there is something to read.
    Close,
    /// Sends a RST.
    Reset,
    /// Sends SETTINGS of HTTP/2: pairs of identifier and value.
    Settings(Vec<(u16, u32)>),
    /// Reads frames of HTTP/2 until a request is complete, and acknowledges what asks for it.
    Request,
    /// Sends HEADERS of HTTP/2 on the request's stream, with these fields as they are.
    Headers {
        /// Names and values.
        fields: Vec<(Bytes, Bytes)>,
        /// Whether the stream ends.
        #[serde(default)]
        end: bool,
    },
    /// Sends DATA of HTTP/2.
    Data {
        /// The payload.
        bytes: Bytes,
        /// Whether the stream ends.
        #[serde(default)]
        end: bool,
    },
    /// Sends `RST_STREAM` with this error code.
    ResetStream(u32),
    /// Sends GOAWAY.
    GoAway {
        /// The last stream that counts.
        last: u32,
        /// The error code.
        code: u32,
    },
    /// Sends any frame of HTTP/2.
    Frame {
        /// Its type.
        kind: u8,
        /// Its flags.
        flags: u8,
        /// Its stream; absent: that of the request.
        #[serde(default)]
        stream: Option<u32>,
        /// Its payload.
        bytes: Bytes,
    },
}

fn one() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this form")]
fn is_one(number: &u16) -> bool {
    *number == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
