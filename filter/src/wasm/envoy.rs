//! Envoy as a proxy-wasm host.

use std::time::{Duration, UNIX_EPOCH};

use probe::Reason;
use proxy_wasm::hostcalls;
use proxy_wasm::types::{BufferType, MapType, MetricType, Status};

use super::filter_state::destination_argument;
use super::local_reply;
use super::text::text;
use crate::attributes::{Attribute, Attributes, Unreadable};
use crate::decision::Callout;
use crate::host::{Host, LogLevel};
use crate::metrics::{Definition, Metric, MetricsHost};

const SET_FILTER_STATE: &str = "set_envoy_filter_state";

/// Acts on the stream of the current callback.
#[derive(Debug, Default)]
pub(super) struct Envoy {
    /// The names of the metrics in their order, with their ids. Defining a metric twice would allocate
    /// a second id, which Envoy never frees.
    ids: Vec<(String, usize)>,
}

impl Attributes for Envoy {
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable> {
        match attribute {
            Attribute::RequestHeader(name) => {
                hostcalls::get_map_value_bytes(MapType::HttpRequestHeaders, name)
            }
            Attribute::ResponseHeader(name) => {
                hostcalls::get_map_value_bytes(MapType::HttpResponseHeaders, name)
            }
            Attribute::CalloutHeader(name) => {
                hostcalls::get_map_value_bytes(MapType::HttpCallResponseHeaders, name)
            }
            Attribute::CalloutTrailer(name) => {
                hostcalls::get_map_value_bytes(MapType::HttpCallResponseTrailers, name)
            }
            Attribute::CalloutBody(max) => hostcalls::get_buffer(BufferType::HttpCallResponseBody, 0, max),
            Attribute::CodeDetails => hostcalls::get_property(vec!["response", "code_details"]),
            Attribute::SourceAddress => hostcalls::get_property(vec!["source", "address"]),
            Attribute::TransportFailure => {
                hostcalls::get_property(vec!["upstream", "transport_failure_reason"])
            }
        }
        .map_err(|_| Unreadable)
    }

    fn elapsed(&self) -> Option<Duration> {
        // The arrival time of the request's first byte, in nanoseconds since 1970.
        let started = hostcalls::get_property(vec!["request", "time"]).ok()??;
        let started = u64::from_le_bytes(started.try_into().ok()?);
        Some(Duration::from_nanos(self.now().saturating_sub(started)))
    }
}

impl MetricsHost for Envoy {
    fn define(&mut self, metric: Metric<'_>) -> Option<Definition> {
        let name = metric.tagged_name();
        let place = match self.ids.binary_search_by(|(found, _)| found.as_str().cmp(&name)) {
            Ok(found) => {
                return self.ids.get(found).map(|(_, id)| Definition { id: *id, is_new: false });
            }
            Err(place) => place,
        };
        let kind = if metric.family().is_gauge() { MetricType::Gauge } else { MetricType::Counter };
        let id = usize::try_from(hostcalls::define_metric(kind, &name).ok()?).ok()?;
        self.ids.insert(place, (name, id));
        Some(Definition { id, is_new: true })
    }

    fn increment(&mut self, id: usize, _metric: Metric<'_>) {
        if let Ok(id) = u32::try_from(id) {
            let _ = hostcalls::increment_metric(id, 1);
        }
    }

    fn set(&mut self, id: usize, _metric: Metric<'_>, value: u64) {
        if let Ok(id) = u32::try_from(id) {
            let _ = hostcalls::record_metric(id, value);
        }
    }
}

impl Host for Envoy {
    fn forward(&mut self, destination: &str, headers: &[(&[u8], &[u8])]) -> Result<(), Reason> {
        hostcalls::call_foreign_function(SET_FILTER_STATE, Some(&destination_argument(destination)))
            .map_err(|_| Reason::Configuration)?;
        set_headers(MapType::HttpRequestHeaders, headers)
    }

    fn start_callout(&mut self, callout: &Callout<'_>) -> Result<u64, Reason> {
        let texts: Vec<_> = callout.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
        let headers = texts.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        let body = Some(callout.body).filter(|body| !body.is_empty());
        match hostcalls::dispatch_http_call(callout.cluster, headers, body, vec![], callout.timeout) {
            Ok(token) => Ok(u64::from(token)),
            // The circuit breaker of the cluster is open.
            Err(Status::InternalFailure) => Err(Reason::Overloaded),
            Err(_) => Err(Reason::Configuration),
        }
    }

    fn replace_response(&mut self, status: u16) -> Result<(), Reason> {
        set_headers(MapType::HttpResponseHeaders, &[(b":status", status.to_string().as_bytes())])
    }

    fn replace_chunk(&mut self, size: usize, spaces: usize) -> Result<(), Reason> {
        hostcalls::set_buffer(BufferType::HttpResponseBody, 0, size, &vec![b' '; spaces])
            .map_err(|_| Reason::Configuration)
    }

    fn send_local_reply(&mut self, status: u16, reason: Reason) -> Result<(), Reason> {
        local_reply::send(status, reason.word(), &reason.body()).map_err(|_| Reason::Configuration)
    }

    fn reset(&mut self) {
        let _ = hostcalls::reset_http_request();
    }

    fn log(&mut self, level: LogLevel, text: &str) {
        match level {
            LogLevel::Info => log::info!("{text}"),
            LogLevel::Warn => log::warn!("{text}"),
            LogLevel::Error => log::error!("{text}"),
        }
    }

    fn now(&self) -> u64 {
        let since_1970 =
            hostcalls::get_current_time().ok().and_then(|now| now.duration_since(UNIX_EPOCH).ok());
        since_1970.and_then(|now| u64::try_from(now.as_nanos()).ok()).unwrap_or(0)
    }
}

fn set_headers(map: MapType, headers: &[(&[u8], &[u8])]) -> Result<(), Reason> {
    // Every name is a constant or was validated as a header name, which is ASCII.
    let pairs = headers.iter().map(|(name, value)| (std::str::from_utf8(name).unwrap_or_default(), *value));
    hostcalls::set_map_bytes(map, pairs.collect()).map_err(|_| Reason::Configuration)
}
