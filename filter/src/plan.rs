//! What a prober becomes at configuration time: everything that its probes need, ready-made.

use std::time::Duration;

use probe::{Grpc, GrpcMode, Handler, ProbeKind, ProbePath, Prober, Request, Scheme, UserAgent};

use crate::wire;

/// Name and value of each header, as they are sent.
pub type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Picks the route; the listener takes it away from every caller before anything reads it.
const KIND: &[u8] = b"x-app-health-kind";
/// The host of a callout's cluster; callouts do not see filter state.
const DESTINATION: &[u8] = b"x-app-health-dst";
/// The route's timeout for this request.
const TIMEOUT: &[u8] = b"x-envoy-upstream-rq-timeout-ms";
/// Envoy matches no route for a request without it; the routes take it away again.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// One prober, prepared.
#[derive(Debug)]
pub struct Plan {
    /// Whose probe, and which.
    pub path: ProbePath,
    /// The declared timeout.
    pub timeout: Duration,
    /// How the application is asked.
    pub action: Action,
    timeout_text: String,
}

/// How the application is asked.
#[derive(Debug)]
pub enum Action {
    /// By the request itself, sent on by a route.
    Http {
        /// What kubelet would have sent.
        request: Box<Request>,
        /// The path and query of `request`.
        target: Vec<u8>,
        /// The value of `x-app-health-kind`.
        kind: &'static str,
        /// The argument of `set_envoy_filter_state`.
        state: Vec<u8>,
    },
    /// By the request, for which a route only opens a connection.
    Tcp {
        /// `address:port`
        destination: String,
        /// The argument of `set_envoy_filter_state`.
        state: Vec<u8>,
    },
    /// By a callout.
    Grpc {
        /// `address:port`
        destination: String,
        /// `http` or `https`
        scheme: &'static str,
        /// Which cluster.
        mode: GrpcMode,
        /// The request's body.
        frame: Vec<u8>,
        /// The value of `grpc-timeout`.
        grpc_timeout: String,
    },
}

impl Plan {
    /// Prepares a prober; `pod` is the pod's address as it stands in an authority (brackets for IPv6).
    pub fn new(path: &ProbePath, prober: &Prober, pod: &str) -> Self {
        let destination = format!("{pod}:{}", prober.port());
        let action = match &prober.handler {
            Handler::HttpGet(http) => {
                let request = Request::new(http, &destination);
                Action::Http {
                    target: request.url.request_target(),
                    kind: kind(http.scheme, request.declares(FORWARDED_PROTO)),
                    state: wire::destination_state(&destination),
                    request: Box::new(request),
                }
            }
            Handler::TcpSocket(_) => {
                Action::Tcp { state: wire::destination_state(&destination), destination }
            }
            Handler::Grpc(grpc) => check(grpc, destination, prober.timeout),
        };
        let timeout_text = prober.timeout.as_millis().to_string();
        Self { path: path.clone(), timeout: prober.timeout, action, timeout_text }
    }

    /// Whether kubelet takes any HTTP answer as success and sets no timeout.
    pub fn is_hook(&self) -> bool {
        self.path.kind().is_hook()
    }

    /// Whether the caller's `User-Agent` matters.
    pub fn wants_user_agent(&self) -> bool {
        match &self.action {
            Action::Http { request, .. } => request.user_agent == UserAgent::Caller,
            Action::Tcp { .. } => false,
            Action::Grpc { .. } => true,
        }
    }

    /// The request head for the route, or for the callout of a gRPC probe.
    pub fn head<'a>(&'a self, user_agent: &'a [u8]) -> Pairs<'a> {
        match &self.action {
            Action::Http { request, target, kind, .. } => {
                let mut head = request_head(request, target, user_agent);
                head.push((KIND, kind.as_bytes()));
                head.push((TIMEOUT, self.timeout_text.as_bytes()));
                if !request.declares(FORWARDED_PROTO) {
                    head.push((FORWARDED_PROTO.as_bytes(), b"http"));
                }
                head
            }
            // The route makes a connection of a POST; no byte of it is sent.
            Action::Tcp { destination, .. } => vec![
                (b":method", b"POST"),
                (b":path", b"/"),
                (b":authority", destination.as_bytes()),
                (b":scheme", b"http"),
                (FORWARDED_PROTO.as_bytes(), b"http"),
                (KIND, b"tcp"),
                (TIMEOUT, self.timeout_text.as_bytes()),
            ],
            Action::Grpc { destination, scheme, grpc_timeout, .. } => vec![
                (b":method", b"POST"),
                (b":path", probe::grpc_health::CHECK.as_bytes()),
                (b":authority", destination.as_bytes()),
                (b":scheme", scheme.as_bytes()),
                (b"te", b"trailers"),
                (b"content-type", b"application/grpc"),
                (b"user-agent", user_agent),
                (b"grpc-timeout", grpc_timeout.as_bytes()),
                (DESTINATION, destination.as_bytes()),
            ],
        }
    }
}

/// The head of a callout that follows a redirect. `destination` is `address:port`.
pub fn hop_head<'a>(
    request: &'a Request,
    target: &'a [u8],
    user_agent: &'a [u8],
    destination: &'a str,
) -> Pairs<'a> {
    let mut head = request_head(request, target, user_agent);
    if let Some(referer) = &request.referer {
        head.push((b"referer", referer));
    }
    if let Some(authorization) = &request.authorization {
        head.push((b"authorization", authorization));
    }
    head.push((DESTINATION, destination.as_bytes()));
    head
}

/// What the application sees of a request, in the order in which Go's client writes it.
fn request_head<'a>(request: &'a Request, target: &'a [u8], user_agent: &'a [u8]) -> Pairs<'a> {
    let mut head: Pairs = vec![
        (b":method", b"GET"),
        (b":path", target),
        (b":authority", request.authority()),
        (b":scheme", &request.url.scheme),
    ];
    if request.user_agent == UserAgent::Caller {
        head.push((b"user-agent", user_agent));
    }
    head.extend(request.sent_headers());
    head
}

fn kind(scheme: Scheme, declares_forwarded_proto: bool) -> &'static str {
    match (scheme, declares_forwarded_proto) {
        (Scheme::Http, false) => "http",
        (Scheme::Https, false) => "https",
        (Scheme::Http, true) => "http-x-forwarded-proto",
        (Scheme::Https, true) => "https-x-forwarded-proto",
    }
}

fn check(grpc: &Grpc, destination: String, timeout: Duration) -> Action {
    Action::Grpc {
        destination,
        scheme: match grpc.mode {
            GrpcMode::Plaintext => "http",
            GrpcMode::Tls => "https",
        },
        mode: grpc.mode,
        frame: probe::grpc_health::request_frame(&grpc.service),
        // At most eight digits: milliseconds hold a day.
        grpc_timeout: format!("{}m", timeout.as_millis()),
    }
}

/// The `User-Agent` that is sent for a caller's: kubelet's own, and nothing else a caller could write.
pub fn user_agent(caller: Option<&[u8]>, kind: ProbeKind) -> &[u8] {
    let version = |text: &[u8]| {
        (1..=16).contains(&text.len())
            && text.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'+'))
    };
    let kubelet = |caller: &&[u8]| {
        [b"kube-probe/".as_slice(), b"kube-lifecycle/"]
            .into_iter()
            .any(|product| caller.strip_prefix(product).is_some_and(version))
    };
    match (caller.filter(kubelet), kind.is_hook()) {
        (Some(caller), _) => caller,
        (None, false) => b"kube-probe/app-health",
        (None, true) => b"kube-lifecycle/app-health",
    }
}

#[cfg(test)]
mod tests;
