//! Feeds arbitrary configurations, and arbitrary responses of applications and words of Envoy, to the
//! filter's state machine.

use std::rc::Rc;
use std::time::Duration;

use app_health_filter::attributes::{Attribute, Attributes, Unreadable};
use app_health_filter::config::Config;
use app_health_filter::decision::{CalloutSize, Decision};
use app_health_filter::prober_plan::HeaderPairs;
use app_health_filter::stream::Stream;

const CONFIG: &str = r#"{"podIP":"10.0.0.5","reuseConnections":true,"probers":{
    "/app-health/http/livez":{"httpGet":{"port":8080,"path":"/a"},"timeoutSeconds":2},
    "/app-health/grpc/livez":{"grpc":{"port":9000}}}}"#;
const HTTP: &str = "/app-health/http/livez";
const GRPC: &str = "/app-health/grpc/livez";
/// Maximum number of responses to one probe.
const STEPS: u64 = 16;

/// Envoy, of which each attribute has the next line of the input as its value.
struct Envoy<'a> {
    path: &'static str,
    lines: &'a [&'a [u8]],
}

impl Attributes for Envoy<'_> {
    fn read(&self, attribute: Attribute) -> Result<Option<Vec<u8>>, Unreadable> {
        let line = |place: usize| self.lines.get(place).map(|line| line.to_vec());
        Ok(match attribute {
            Attribute::RequestHeader(":path") => Some(self.path.into()),
            Attribute::RequestHeader(":method") => Some("GET".into()),
            Attribute::RequestHeader(_) => None,
            Attribute::ResponseHeader(":status") | Attribute::CalloutHeader(":status") => line(0),
            Attribute::CodeDetails | Attribute::CalloutTrailer("grpc-status") => line(1),
            Attribute::TransportFailure | Attribute::CalloutTrailer(_) => line(2),
            Attribute::ResponseHeader(_) | Attribute::CalloutHeader(_) => line(3),
            Attribute::CalloutBody(max) => line(4).map(|body| body.into_iter().take(max).collect()),
            Attribute::SourceAddress => line(5),
        })
    }

    fn elapsed(&self) -> Option<Duration> {
        let milliseconds = self.lines.get(6)?.len();
        u64::try_from(milliseconds).ok().map(Duration::from_millis)
    }
}

pub(crate) fn check_headers(headers: &HeaderPairs) {
    for (name, value) in headers {
        let is_text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        assert!(value.iter().all(is_text), "{value:?}");
        assert!(name.iter().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()), "{name:?}");
    }
}

/// Parses a plugin configuration. Every request of an accepted one consists of valid headers.
///
/// # Panics
/// Panics if one does not.
pub fn prober_table(bytes: &[u8]) {
    let Ok(config) = Config::parse(bytes) else { return };
    for probe in config.probes() {
        check_headers(&probe.plan.headers(b"kube-probe/1.36"));
        let path = probe.plan.path.to_string();
        assert!(config.probe(path.as_bytes()).is_some_and(|found| Rc::ptr_eq(found, probe)), "{path}");
    }
}

/// Feeds responses that came through a route, and responses to callouts, to the state machine. Each
/// line of the input is an attribute of the response; the first byte is the number of body bytes, of
/// headers and of trailers. Every status that kubelet gets is one of HTTP.
///
/// # Panics
/// Panics if a status or a header is not valid.
pub fn responses(bytes: &[u8]) {
    thread_local!(static CONFIG_OF_ALL: Rc<Config> = Rc::new(Config::parse(CONFIG.as_bytes()).expect("valid")));
    let config = CONFIG_OF_ALL.with(Rc::clone);
    let Some((first, rest)) = bytes.split_first() else { return };
    let lines: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').collect();
    let size = CalloutSize {
        headers: usize::from(first & 3),
        body: lines.get(4).map_or(0, |body| body.len()),
        trailers: usize::from(first >> 2 & 1),
    };
    for path in [HTTP, GRPC] {
        let envoy = Envoy { path, lines: &lines };
        let mut stream = Stream::default();
        let mut token = 0;
        let mut decision = stream.on_request_headers(&config, &envoy, false);
        while token < STEPS {
            token += 1;
            match decision {
                Decision::Forward { headers, .. } => {
                    check_headers(&headers);
                    decision = stream.on_response_headers(&envoy);
                }
                Decision::Callout(callout) => {
                    check_headers(&callout.headers);
                    assert!(callout.timeout > Duration::ZERO);
                    stream.callout_started(token);
                    decision = stream.on_callout_response(size, &envoy);
                }
                Decision::ForwardStatus { status, .. } | Decision::LocalReply { status, .. } => {
                    assert!((200..=599).contains(&status), "{status}");
                    break;
                }
                Decision::Continue | Decision::Reset(_) | Decision::RefuseHook { .. } => break,
            }
        }
        stream.on_response_body(bytes.len(), false);
        stream.on_response_body(0, true);
    }
}
