//! Feeds arbitrary responses to callouts to the filter's state machine: those of gRPC health checks,
//! and those of a chain of redirects.

use std::rc::Rc;
use std::time::Duration;

use app_health_filter::attributes::{Attribute, Attributes, Unreadable};
use app_health_filter::config::Config;
use app_health_filter::decision::{Callout, CalloutSize, Decision};
use app_health_filter::stream::Stream;

use crate::filter::check_headers;

const CONFIG: &str = r#"{"podIP":"10.0.0.5","statusPort":15020,"reservedPorts":[19000],"probers":{
    "/app-health/http/livez":{"httpGet":{"port":8080,"path":"/a"},"timeoutSeconds":2},
    "/app-health/grpc/livez":{"grpc":{"port":9000,"service":"shop"},"timeoutSeconds":2}}}"#;
const PATHS: [&str; 2] = ["/app-health/http/livez", "/app-health/grpc/livez"];
/// Ports of the proxy, to which no callout may go.
const PROXY_PORTS: [&str; 7] = ["15000", "15001", "15004", "15006", "15020", "15021", "19000"];
/// Maximum number of requests of one probe, as in Go's HTTP client.
const REQUESTS: usize = 10;
/// Separates the responses of an input.
const SEPARATOR: u8 = 0x1e;

/// One response: header lines `name: value`, with `~` before the name for trailers, an empty line, and
/// the body.
#[derive(Default)]
struct Response<'a> {
    pairs: Vec<(&'a [u8], &'a [u8])>,
    body: &'a [u8],
}

impl<'a> Response<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let mut response = Self::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            rest = after.strip_prefix(b"\n").unwrap_or_default();
            if line.is_empty() {
                response.body = rest;
                break;
            }
            // The name of a pseudo-header starts with a colon.
            let colon = line.iter().skip(1).position(|byte| *byte == b':').map(|place| place + 1);
            let (name, value) = line.split_at(colon.unwrap_or(line.len()));
            response.pairs.push((name, value.strip_prefix(b": ").unwrap_or_default()));
        }
        response
    }

    fn value(&self, name: &str, is_trailer: bool) -> Option<Vec<u8>> {
        let name = if is_trailer { format!("~{name}") } else { name.to_owned() };
        let pair = self.pairs.iter().find(|(found, _)| *found == name.as_bytes());
        pair.map(|(_, value)| value.to_vec())
    }

    fn size(&self) -> CalloutSize {
        let trailers = self.pairs.iter().filter(|(name, _)| name.starts_with(b"~")).count();
        CalloutSize { headers: self.pairs.len() - trailers, body: self.body.len(), trailers }
    }
}

/// Envoy with one request and the newest response to it.
struct Envoy<'a> {
    path: &'static str,
    response: Response<'a>,
    elapsed: Duration,
}

impl Attributes for Envoy<'_> {
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable> {
        Ok(match attribute {
            Attribute::RequestHeader(":path") => Some(self.path.into()),
            Attribute::RequestHeader(":method") => Some("GET".into()),
            Attribute::SourceAddress => Some("10.0.0.1:4000".into()),
            Attribute::RequestHeader(_) | Attribute::CodeDetails | Attribute::TransportFailure => None,
            Attribute::ResponseHeader(name) | Attribute::CalloutHeader(name) => {
                self.response.value(name, false)
            }
            Attribute::CalloutTrailer(name) => self.response.value(name, true),
            Attribute::CalloutBody(max) => Some(self.response.body.iter().copied().take(max).collect()),
        })
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(self.elapsed)
    }
}

/// Checks a callout: valid headers, and a destination on the Pod that is no port of the proxy.
fn check_callout(callout: &Callout) {
    check_headers(&callout.headers);
    assert!(callout.timeout > Duration::ZERO);
    let mut pairs = callout.headers.iter();
    let (_, destination) = pairs.find(|(name, _)| *name == b"x-app-health-dst").expect("a destination");
    let destination = String::from_utf8_lossy(destination);
    let port = destination.strip_prefix("10.0.0.5:").expect("the address of the Pod");
    assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{destination}");
    assert!(!PROXY_PORTS.contains(&port), "{destination}");
}

/// Returns whether a gRPC health check may succeed with this response: its media type is gRPC's, and
/// its status is 0.
fn is_grpc_success(response: &Response) -> bool {
    let is_trailer = response.size().trailers > 0;
    response.value("content-type", false).is_some_and(|kind| kind.starts_with(b"application/grpc"))
        && response.value("grpc-status", is_trailer).is_some_and(|status| status.ends_with(b"0"))
        && !response.body.is_empty()
}

/// Probes an application over HTTP and over gRPC, which sends the responses of the input, one after the
/// other; they are separated by a byte 0x1e. Every callout goes to the Pod and to no port of the
/// proxy, a probe sends at most ten requests, and kubelet gets a status of HTTP. A gRPC check succeeds
/// only with a gRPC response whose status is 0.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn callouts(bytes: &[u8]) {
    thread_local!(static CONFIG_OF_ALL: Rc<Config> = Rc::new(Config::parse(CONFIG.as_bytes()).expect("valid")));
    let config = CONFIG_OF_ALL.with(Rc::clone);
    for path in PATHS {
        let mut responses = bytes.split(|byte| *byte == SEPARATOR).map(Response::parse);
        let mut envoy = Envoy { path, response: Response::default(), elapsed: Duration::ZERO };
        let mut stream = Stream::default();
        let mut requests = 0;
        let mut decision = stream.on_request_headers(&config, &envoy, false);
        loop {
            let is_callout = match &decision {
                Decision::Callout(callout) => {
                    check_callout(callout);
                    true
                }
                Decision::Forward { headers, .. } => {
                    check_headers(headers);
                    false
                }
                Decision::ForwardStatus { status, reason } | Decision::LocalReply { status, reason } => {
                    assert!((200..=599).contains(status), "{status}");
                    assert_eq!(reason.is_success(), (200..400).contains(status), "{reason:?}: {status}");
                    if path == PATHS[1] {
                        assert!(!reason.is_success() || is_grpc_success(&envoy.response), "{reason:?}");
                    }
                    break;
                }
                Decision::Continue | Decision::Reset(_) | Decision::RefuseHook { .. } => break,
            };
            requests += 1;
            assert!(requests <= REQUESTS, "{requests} requests of one probe");
            let Some(response) = responses.next() else { break };
            envoy = Envoy { path, response, elapsed: envoy.elapsed + Duration::from_millis(100) };
            decision = if is_callout {
                stream.callout_started(requests as u64);
                stream.on_callout_response(envoy.response.size(), &envoy)
            } else {
                stream.on_response_headers(&envoy)
            };
        }
    }
}
