//! Prepares the requests of one prober at configuration time.

use std::time::Duration;

use probe::{Connection, Grpc, GrpcMode, Handler, ProbePath, Prober, Request, Scheme, UserAgent};

/// Header names and values, in the order in which they are sent.
pub type HeaderPairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The filter state from which the routes' `ORIGINAL_DST` clusters take the upstream address. Unlike
/// a header, a client cannot set it.
pub const DESTINATION_KEY: &str = "envoy.network.transport_socket.original_dst_address";
/// The header by which Envoy selects the route. The listener removes it from downstream requests
/// before any filter runs.
const KIND_HEADER: &[u8] = b"x-app-health-kind";
/// The header from which a callout's cluster takes the upstream address, because callouts have no
/// filter state.
const DESTINATION_HEADER: &[u8] = b"x-app-health-dst";
/// The header that sets the timeout of the route for this request.
const TIMEOUT_HEADER: &[u8] = b"x-envoy-upstream-rq-timeout-ms";
/// Envoy sends a request again if its connection ends before a response, once. A connection that was
/// used before may have been closed by the application in the meantime; Go's client treats such a
/// request alike.
const RETRY: [(&[u8], &[u8]); 2] = [(b"x-envoy-retry-on", b"reset"), (b"x-envoy-max-retries", b"1")];
/// Envoy matches no route for a request without it; the routes remove it again.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// A prober with its prepared requests.
#[derive(Debug)]
pub struct ProberPlan {
    pub path: ProbePath,
    pub timeout: Duration,
    pub request: PlannedRequest,
    /// Whether the connection to the application ends after the first request.
    pub connection: Connection,
    timeout_text: String,
}

/// How the filter sends a probe to the application.
#[derive(Debug)]
pub enum PlannedRequest {
    /// The filter replaces the headers of kubelet's request, and a route forwards it.
    Http {
        /// The request that kubelet would have sent.
        request: Box<Request>,
        target: Vec<u8>,
        kind: &'static str,
        /// `address:port`.
        destination: String,
    },
    /// A route opens a TCP connection to the application and sends nothing.
    Tcp {
        /// `address:port`.
        destination: String,
    },
    /// The filter sends the request as an HTTP callout.
    Grpc {
        /// `address:port`.
        destination: String,
        scheme: &'static str,
        /// Selects the cluster: plaintext or TLS.
        mode: GrpcMode,
        /// The request body, a length-prefixed gRPC message.
        message: Vec<u8>,
        grpc_timeout: String,
    },
}

impl ProberPlan {
    /// Prepares a prober. `pod` is the Pod's IP address as written in a URL's authority, with
    /// brackets for IPv6. An `httpGet` hook always opens a connection: it cannot be sent twice.
    pub fn new(path: &ProbePath, prober: &Prober, pod: &str, connection: Connection) -> Self {
        let destination = format!("{pod}:{}", prober.port());
        let is_http_hook = path.kind().is_hook() && matches!(prober.handler, Handler::HttpGet(_));
        let connection = if is_http_hook { Connection::Close } else { connection };
        let request = match &prober.handler {
            Handler::HttpGet(http) => {
                let request = Request::new(http, &destination);
                PlannedRequest::Http {
                    target: request.url.request_target(),
                    kind: route_kind(http.scheme, request.declares(FORWARDED_PROTO), connection),
                    request: Box::new(request),
                    destination,
                }
            }
            Handler::TcpSocket(_) => PlannedRequest::Tcp { destination },
            Handler::Grpc(grpc) => grpc_request(grpc, destination, prober.timeout),
        };
        let timeout_text = prober.timeout.as_millis().to_string();
        Self { path: path.clone(), timeout: prober.timeout, request, connection, timeout_text }
    }

    /// True for a lifecycle hook. kubelet treats any HTTP response of a hook as success and sets no
    /// timeout.
    pub fn is_hook(&self) -> bool {
        self.path.kind().is_hook()
    }

    /// True if the request carries the `User-Agent` of kubelet.
    pub fn wants_user_agent(&self) -> bool {
        match &self.request {
            PlannedRequest::Http { request, .. } => request.user_agent == UserAgent::Kubelet,
            PlannedRequest::Tcp { .. } => false,
            PlannedRequest::Grpc { .. } => true,
        }
    }

    /// Returns the request headers for the route, or for the callout of a gRPC probe.
    pub fn headers<'a>(&'a self, user_agent: &'a [u8]) -> HeaderPairs<'a> {
        match &self.request {
            PlannedRequest::Http { request, target, kind, .. } => {
                let mut headers = request_headers(request, target, user_agent, self.connection);
                if self.connection == Connection::KeepAlive {
                    headers.extend(RETRY);
                }
                headers.push((KIND_HEADER, kind.as_bytes()));
                headers.push((TIMEOUT_HEADER, self.timeout_text.as_bytes()));
                if !request.declares(FORWARDED_PROTO) {
                    headers.push((FORWARDED_PROTO.as_bytes(), b"http"));
                }
                headers
            }
            // The route has `connect_config.allow_post`, so Envoy turns the POST into a TCP
            // connection and sends no byte of the request.
            PlannedRequest::Tcp { destination } => vec![
                (b":method", b"POST"),
                (b":path", b"/"),
                (b":authority", destination.as_bytes()),
                (b":scheme", b"http"),
                (FORWARDED_PROTO.as_bytes(), b"http"),
                (KIND_HEADER, b"tcp"),
                (TIMEOUT_HEADER, self.timeout_text.as_bytes()),
            ],
            PlannedRequest::Grpc { destination, scheme, grpc_timeout, .. } => vec![
                (b":method", b"POST"),
                (b":path", probe::grpc_health::CHECK.as_bytes()),
                (b":authority", destination.as_bytes()),
                (b":scheme", scheme.as_bytes()),
                (b"te", b"trailers"),
                (b"content-type", b"application/grpc"),
                (b"user-agent", user_agent),
                (b"grpc-timeout", grpc_timeout.as_bytes()),
                (DESTINATION_HEADER, destination.as_bytes()),
            ],
        }
    }
}

/// Returns the headers of a callout that follows a redirect. `destination` is `address:port`.
pub fn redirect_headers<'a>(
    request: &'a Request,
    target: &'a [u8],
    user_agent: &'a [u8],
    destination: &'a str,
) -> HeaderPairs<'a> {
    let mut headers = request_headers(request, target, user_agent, Connection::Close);
    if let Some(referer) = &request.referer {
        headers.push((b"referer", referer));
    }
    if let Some(authorization) = &request.authorization {
        headers.push((b"authorization", authorization));
    }
    headers.push((DESTINATION_HEADER, destination.as_bytes()));
    headers
}

/// Returns the headers that the application receives, in the order in which Go's HTTP client writes
/// them.
fn request_headers<'a>(
    request: &'a Request,
    target: &'a [u8],
    user_agent: &'a [u8],
    connection: Connection,
) -> HeaderPairs<'a> {
    let mut headers: HeaderPairs = vec![
        (b":method", b"GET"),
        (b":path", target),
        (b":authority", request.authority()),
        (b":scheme", &request.url.scheme),
    ];
    if request.user_agent == UserAgent::Kubelet {
        headers.push((b"user-agent", user_agent));
    }
    headers.extend(request.sent_headers(connection));
    headers
}

fn route_kind(scheme: Scheme, declares_forwarded_proto: bool, connection: Connection) -> &'static str {
    match (scheme, declares_forwarded_proto, connection) {
        (Scheme::Http, false, Connection::Close) => "http",
        (Scheme::Https, false, Connection::Close) => "https",
        (Scheme::Http, true, Connection::Close) => "http-x-forwarded-proto",
        (Scheme::Https, true, Connection::Close) => "https-x-forwarded-proto",
        (Scheme::Http, false, Connection::KeepAlive) => "reuse-http",
        (Scheme::Https, false, Connection::KeepAlive) => "reuse-https",
        (Scheme::Http, true, Connection::KeepAlive) => "reuse-http-x-forwarded-proto",
        (Scheme::Https, true, Connection::KeepAlive) => "reuse-https-x-forwarded-proto",
    }
}

fn grpc_request(grpc: &Grpc, destination: String, timeout: Duration) -> PlannedRequest {
    PlannedRequest::Grpc {
        destination,
        scheme: match grpc.mode {
            GrpcMode::Plaintext => "http",
            GrpcMode::Tls => "https",
        },
        mode: grpc.mode,
        message: probe::grpc_health::request_message(&grpc.service),
        // The gRPC specification allows eight digits, which is enough for a day in milliseconds.
        grpc_timeout: format!("{}m", timeout.as_millis()),
    }
}

#[cfg(test)]
mod tests;
