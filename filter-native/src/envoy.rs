//! Envoy as the host of the state machine, for one stream.

use std::time::{Duration, Instant};

use app_health_filter::attributes::{Attribute, Attributes, Unreadable};
use app_health_filter::decision;
use app_health_filter::host::{Host, LogLevel};
use app_health_filter::metrics::{Definition, Metric, MetricsHost};
use app_health_filter::prober_plan::DESTINATION_KEY;
use probe::Reason;

use crate::abi::{self, EnvoyFilter, HeaderMap, StartError};
use crate::callout::{self, Callout};
use crate::header_edits::{Edit, edits};
use crate::metrics::{self, FamilyIds};
use crate::worker;

/// Envoy adds this header to every callout of a dynamic module, and the clusters of callouts remove it.
const FORWARDED_FOR: &[u8] = b"x-forwarded-for";
/// The header that these clusters rename to [`FORWARDED_FOR`].
const DECLARED_FORWARDED_FOR: &[u8] = b"x-app-health-forwarded-for";

/// Envoy in one hook of a stream.
pub(crate) struct Envoy<'a> {
    pub(crate) filter: EnvoyFilter,
    pub(crate) ids: FamilyIds,
    /// When the request headers arrived.
    pub(crate) started: Instant,
    /// The response to the current callout, when it is complete.
    pub(crate) callout: Option<&'a Callout>,
}

impl Attributes for Envoy<'_> {
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable> {
        let callout = || self.callout.ok_or(Unreadable);
        Ok(match attribute {
            Attribute::RequestHeader(name) => self.filter.header(HeaderMap::Request, name),
            Attribute::ResponseHeader(name) => self.filter.header(HeaderMap::Response, name),
            Attribute::CalloutHeader(name) => callout::value(&callout()?.headers, name),
            Attribute::CalloutTrailer(name) => callout::value(&callout()?.trailers, name),
            Attribute::CalloutBody(max) => {
                let body = &callout()?.body;
                Some(body.get(..max).unwrap_or(body).to_vec())
            }
            Attribute::CodeDetails => self.filter.attribute(abi::Attribute::ResponseCodeDetails),
            Attribute::SourceAddress => self.filter.attribute(abi::Attribute::SourceAddress),
            Attribute::TransportFailure => {
                self.filter.attribute(abi::Attribute::UpstreamTransportFailureReason)
            }
        })
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(self.started.elapsed())
    }
}

impl MetricsHost for Envoy<'_> {
    fn define(&mut self, metric: Metric<'_>) -> Option<Definition> {
        Some(self.ids.remember(metric))
    }

    fn increment(&mut self, id: usize, metric: Metric<'_>) {
        self.filter.increment_counter(id, metric.label_values(), 1);
    }

    fn set(&mut self, id: usize, metric: Metric<'_>, value: u64) {
        let set = || self.filter.set_gauge(id, metric.label_values(), value);
        match metric {
            Metric::ProbeSuccess(path) => metrics::set_if_changed(path, value, set),
            _ => set(),
        }
    }
}

impl Host for Envoy<'_> {
    fn forward(&mut self, destination: &str, headers: &[(&[u8], &[u8])]) -> Result<(), Reason> {
        if !self.filter.set_filter_state(DESTINATION_KEY, destination) {
            return Err(Reason::Configuration);
        }
        self.replace_headers(HeaderMap::Request, headers)?;
        self.filter.clear_route_cache();
        Ok(())
    }

    fn start_callout(&mut self, callout: &decision::Callout<'_>) -> Result<u64, Reason> {
        let length = callout.body.len().to_string();
        let mut headers = callout.headers.clone();
        let is_declared = |(name, _): &&(&[u8], &[u8])| *name == FORWARDED_FOR;
        let declared: Vec<&[u8]> = headers.iter().filter(is_declared).map(|(_, value)| *value).collect();
        let forwarded_for = declared.join(b",".as_slice());
        if !declared.is_empty() {
            headers.retain(|(name, _)| *name != FORWARDED_FOR);
            headers.push((DECLARED_FORWARDED_FOR, &forwarded_for));
        }
        if !callout.body.is_empty() {
            headers.push((b"content-length", length.as_bytes()));
        }
        let timeout = u64::try_from(callout.timeout.as_millis()).unwrap_or(u64::MAX);
        self.filter.start_http_stream(callout.cluster, &headers, callout.body, timeout).map_err(|error| {
            match error {
                StartError::CANNOT_CREATE => Reason::Overloaded,
                _ => Reason::Configuration,
            }
        })
    }

    fn replace_response(&mut self, status: u16) -> Result<(), Reason> {
        self.replace_headers(HeaderMap::Response, &[(b":status", status.to_string().as_bytes())])
    }

    fn replace_chunk(&mut self, size: usize, spaces: usize) -> Result<(), Reason> {
        let replaced = self.filter.replace_response_chunk(size, &vec![b' '; spaces]);
        if replaced { Ok(()) } else { Err(Reason::Configuration) }
    }

    fn send_local_reply(&mut self, status: u16, reason: Reason) -> Result<(), Reason> {
        self.filter.send_response(status, reason.word(), &reason.body());
        Ok(())
    }

    fn reset(&mut self) {
        self.filter.reset();
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        metrics::log(level, text);
    }

    fn now(&self) -> u64 {
        worker::nanoseconds()
    }
}

impl Envoy<'_> {
    fn replace_headers(&self, map: HeaderMap, wanted: &[(&[u8], &[u8])]) -> Result<(), Reason> {
        let present = self.filter.headers(map);
        let done = edits(&present, wanted).into_iter().all(|edit| match edit {
            Edit::Remove(name) => self.filter.set_header(map, name, b""),
            Edit::Set(name, value) => self.filter.set_header(map, name, value),
            // The ABI adds no empty value. HTTP/1.1 allows white space around a value, which every
            // parser removes, so the application sees an empty one.
            Edit::Add(name, b"") => self.filter.add_header(map, name, b" "),
            Edit::Add(name, value) => self.filter.add_header(map, name, value),
        });
        if done { Ok(()) } else { Err(Reason::Configuration) }
    }
}
