//! The format of a case in `tests/conformance/cases/*.yaml`: a prober and the behavior of an
//! application.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bytes::Bytes;
use super::kind::Kind;
use kit::app::tls::Tls;
use kit::pod::{self, Form};

/// A prober and an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Case {
    /// Describes what the case shows; unique among all cases.
    pub name: String,
    pub probe: Probe,
    #[serde(default, skip_serializing_if = "is_default")]
    pub app: App,
    /// Listeners on other ports of the Pod, by name; `{name}` in texts is replaced by the port.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, App>,
    /// Address family of the Pod.
    #[serde(default, skip_serializing_if = "is_default")]
    pub family: Family,
    /// The kind of difference that this case demonstrates; absent for most cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<Kind>,
    /// The same for the agent, if the case is different there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs_in_agent: Option<Kind>,
}

impl Case {
    /// Returns the kind of difference that this case has with the form that is tested.
    pub fn marked(&self) -> Option<Kind> {
        match pod::form() {
            Form::Wasm | Form::Native => self.differs,
            Form::Agent => self.differs_in_agent,
            Form::PilotAgent => None,
        }
    }

    /// Returns whether any request of this case uses TLS.
    pub fn uses_tls(&self) -> bool {
        self.probe.is_https() || self.also.values().any(|app| app.tls.is_some())
    }
}

/// A prober in the format of Kubernetes. If `port` is missing, the port of the application is used;
/// in values, `{port}`, `{ip}` and `{address}` are replaced by those of the application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Probe {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<Value>,
    /// Absent: 1, the default of kubelet.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub timeout_seconds: u16,
}

impl Probe {
    /// Returns the name and value of the handler.
    pub fn handler(&self) -> Option<(&'static str, &Value)> {
        let handlers = [("httpGet", &self.http_get), ("tcpSocket", &self.tcp_socket), ("grpc", &self.grpc)];
        handlers.into_iter().find_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    pub fn is_https(&self) -> bool {
        let scheme = self.http_get.as_ref().and_then(|get| get["scheme"].as_str());
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// An address of 127.0.0.0/8.
    #[default]
    V4,
    /// The address `::1`.
    V6,
}

/// Behavior of a listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct App {
    #[serde(skip_serializing_if = "is_default")]
    pub listens: Listens,
    /// If present, all steps run over TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The scripts for the connections in the order in which they are accepted; the last entry
    /// applies to all further ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Listens {
    #[default]
    Accepts,
    /// The port is closed, so that connections are refused.
    Not,
    /// The kernel completes connections, but the application never accepts them.
    NeverAccepts,
    /// The backlog is full, so that the kernel drops SYN packets.
    BacklogFull,
}

/// The script for a number of consecutive connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Connection {
    /// The number of connections to which the script applies.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: u16,
    /// The steps for each connection. After the last one the sending side is closed, and remaining
    /// input is read.
    #[serde(rename = "do")]
    pub steps: Vec<Step>,
}

/// One step of an application. In written bytes, `{port}`, `{ip}`, `{address}` and the names of
/// other ports are replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Step {
    /// Reads up to the end of an HTTP/1 request head.
    Read,
    /// Reads once, at most this number of bytes.
    Take(usize),
    Write(Bytes),
    /// Writes these bytes repeatedly.
    Repeat {
        bytes: Bytes,
        times: u32,
    },
    /// Writes these bytes repeatedly until the client disconnects.
    Endless(Bytes),
    /// Writes one byte at a time.
    Drip {
        bytes: Bytes,
        /// Pause before each byte, in milliseconds.
        every: u64,
    },
    /// Waits, in milliseconds.
    Wait(u64),
    /// Waits until the client disconnects.
    Hang,
    /// Closes the sending side and continues.
    HalfClose,
    /// Closes the connection at once, without the TLS alert `close_notify` and without reading
    /// remaining input.
    Close,
    Reset,
    /// Sends an HTTP/2 SETTINGS frame of pairs of identifier and value.
    Settings(Vec<(u16, u32)>),
    /// Reads HTTP/2 frames until a request is complete, and acknowledges SETTINGS and PING.
    Request,
    /// Sends HTTP/2 HEADERS with these fields, unmodified, on the stream of the request.
    Headers {
        fields: Vec<(Bytes, Bytes)>,
        /// Whether to set `END_STREAM`.
        #[serde(default)]
        end: bool,
    },
    /// Sends HTTP/2 DATA.
    Data {
        bytes: Bytes,
        /// Whether to set `END_STREAM`.
        #[serde(default)]
        end: bool,
    },
    /// Sends `RST_STREAM` with this error code.
    ResetStream(u32),
    GoAway {
        /// The last stream identifier.
        last: u32,
        code: u32,
    },
    /// Sends an arbitrary HTTP/2 frame.
    Frame {
        kind: u8,
        flags: u8,
        /// Absent: the stream of the request.
        #[serde(default)]
        stream: Option<u32>,
        bytes: Bytes,
    },
}

fn one() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_one(number: &u16) -> bool {
    *number == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
