//! The effects of a filter's host calls, recorded in order as data for assertions.

use std::collections::BTreeMap;
use std::fmt;

/// A header map in order; names and values are bytes, including 0x80 to 0xFF.
pub type Headers = Vec<(Vec<u8>, Vec<u8>)>;

/// Builds a header map: `headers([(":method", "GET"), (":path", "/")])`.
pub fn headers<N: AsRef<[u8]>, V: AsRef<[u8]>>(pairs: impl IntoIterator<Item = (N, V)>) -> Headers {
    pairs.into_iter().map(|(name, value)| (name.as_ref().to_vec(), value.as_ref().to_vec())).collect()
}

/// The level of a log line, with the numbers of proxy-wasm from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Critical,
}

impl LogLevel {
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error, Self::Critical]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

/// The type of a metric, with the numbers of proxy-wasm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// 0; IDs 4, 8, 12 …
    Counter,
    /// 1; IDs 5, 9, 13 …
    Gauge,
    /// 2; IDs 6, 10, 14 …
    Histogram,
}

impl MetricKind {
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::Counter, Self::Gauge, Self::Histogram].get(usize::try_from(number).ok()?).copied()
    }
}

/// The argument of `proxy_close_stream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// 0: resets the HTTP stream.
    Request,
    /// 1: resets the HTTP stream.
    Response,
    /// 2: a TCP connection; does not affect an HTTP stream.
    Downstream,
    /// 3: a TCP connection; does not affect an HTTP stream.
    Upstream,
}

impl StreamKind {
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::Request, Self::Response, Self::Downstream, Self::Upstream]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

/// One effect of a filter. Calls that only read, and calls that return an error, have none. Header
/// names are recorded as the filter wrote them; Envoy's maps convert them to lower case. The
/// `Debug` output shows bytes as escaped text.
#[derive(Clone, PartialEq, Eq)]
pub enum Effect {
    /// A log line; bytes that are not UTF-8 appear as U+FFFD.
    Log { level: LogLevel, text: String },
    /// All request headers were replaced.
    RequestHeadersSet(Headers),
    /// All response headers were replaced.
    ResponseHeadersSet(Headers),
    /// Bytes of the response body were replaced; `start` and `len` in bytes, as passed.
    BodySet { start: u32, len: u32, bytes: Vec<u8> },
    /// A local reply of the filter; it takes effect after the callback.
    LocalResponse { status: u32, headers: Headers, body: Vec<u8>, details: String },
    /// A callout was sent; 0 ms means no timeout.
    HttpCall {
        token: u32,
        cluster: String,
        headers: Headers,
        body: Vec<u8>,
        trailers: Headers,
        timeout_ms: u32,
    },
    /// A foreign function was called with this argument.
    Foreign { name: String, argument: Vec<u8> },
    /// A metric was defined; the same name defined again gets another ID.
    MetricDefined { id: u32, kind: MetricKind, name: String },
    /// A counter or gauge was incremented.
    MetricIncremented { id: u32, name: String, by: i64 },
    /// A value of a metric was recorded.
    MetricRecorded { id: u32, name: String, value: u64 },
    /// A stream was closed; it takes effect after the callback.
    StreamClosed(StreamKind),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let map =
            |map: &Headers| map.iter().map(|(n, v)| format!("{}: {}", text(n), text(v))).collect::<Vec<_>>();
        match self {
            Self::Log { level, text } => write!(f, "Log({level:?}, {text:?})"),
            Self::RequestHeadersSet(headers) => write!(f, "RequestHeadersSet({:?})", map(headers)),
            Self::ResponseHeadersSet(headers) => write!(f, "ResponseHeadersSet({:?})", map(headers)),
            Self::BodySet { start, len, bytes } => write!(f, "BodySet({start}, {len}, {:?})", text(bytes)),
            Self::LocalResponse { status, headers, body, details } => {
                write!(f, "LocalResponse({status}, {:?}, {:?}, {details:?})", map(headers), text(body))
            }
            Self::HttpCall { token, cluster, headers, body, trailers, timeout_ms } => {
                write!(f, "HttpCall({token}, {cluster:?}, {:?}, {:?}, ", map(headers), text(body))?;
                write!(f, "{:?}, {timeout_ms} ms)", map(trailers))
            }
            Self::Foreign { name, argument } => write!(f, "Foreign({name:?}, {:?})", text(argument)),
            Self::MetricDefined { id, kind, name } => write!(f, "MetricDefined({id}, {kind:?}, {name:?})"),
            Self::MetricIncremented { id, name, by } => write!(f, "MetricIncremented({id}, {name:?}, {by})"),
            Self::MetricRecorded { id, name, value } => write!(f, "MetricRecorded({id}, {name:?}, {value})"),
            Self::StreamClosed(kind) => write!(f, "StreamClosed({kind:?})"),
        }
    }
}

/// All effects in order, each with its context.
#[derive(Debug, Default)]
pub struct Transcript(Vec<(u32, Effect)>);

impl Transcript {
    pub(crate) fn push(&mut self, context: u32, effect: Effect) {
        self.0.push((context, effect));
    }

    pub fn effects(&self) -> Vec<Effect> {
        self.0.iter().map(|(_, effect)| effect.clone()).collect()
    }

    /// Returns the effects of one context (the effective one at the time of the call), in order.
    pub fn of(&self, context: u32) -> Vec<Effect> {
        self.0.iter().filter(|(owner, _)| *owner == context).map(|(_, effect)| effect.clone()).collect()
    }

    /// Returns the log lines, in order.
    pub fn log(&self) -> Vec<(LogLevel, String)> {
        let line = |(_, effect): &(u32, Effect)| match effect {
            Effect::Log { level, text } => Some((*level, text.clone())),
            _ => None,
        };
        self.0.iter().filter_map(line).collect()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The number of host calls of the filter, including reads and rejected calls.
#[derive(Debug, Default)]
pub struct CallCount(BTreeMap<&'static str, u32>);

impl CallCount {
    pub(crate) fn add(&mut self, call: &'static str) {
        *self.0.entry(call).or_default() += 1;
    }

    pub fn total(&self) -> u32 {
        self.0.values().sum()
    }

    /// Returns the number of calls of one name: `of("proxy_log")`.
    pub fn of(&self, call: &str) -> u32 {
        self.0.get(call).copied().unwrap_or(0)
    }

    /// Returns the number of each call that was made at least once, by name.
    pub fn by_name(&self) -> &BTreeMap<&'static str, u32> {
        &self.0
    }

    pub fn reset(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests;
