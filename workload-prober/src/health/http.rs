//! `httpGet` probes: a GET request, decided by the status of the final response as soon as its
//! headers arrive. Each request, including redirects, uses a new connection.

use std::net::IpAddr;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONNECTION, HOST, LOCATION, USER_AGENT};
use hyper::http::uri::{Authority, PathAndQuery, Scheme as UriScheme};
use hyper::{Request, Response, Uri};
use probe::Redirect;
use probe::Scheme;
use probe::url::Url;
use tokio_rustls::TlsConnector;
use workload_health::{HealthReason, Unhealthy, WorkloadHttpGet};

use super::target::{self, Target, TargetResolver};
use super::{http_exchange, tls};

/// Limit of requests per probe, including the first one.
const MAX_REQUESTS: u32 = 10;
/// User-Agent of probes that do not declare one.
const USER_AGENT_VALUE: &str = concat!("app-health-agent/", env!("CARGO_PKG_VERSION"));

/// The parts of a response that the probe evaluates.
#[derive(Debug, PartialEq, Eq)]
struct ResponseHead {
    status: u16,
    location: Option<Vec<u8>>,
}

/// Performs one probe and follows its redirects. `tls` creates the connector and is called only for
/// `scheme: HTTPS`.
pub(super) async fn probe(
    get: &WorkloadHttpGet,
    resolver: &TargetResolver,
    tls: impl Fn() -> TlsConnector,
) -> Result<(), Unhealthy> {
    let targets = resolver.resolve(get.host.as_deref(), get.port).await?;
    let host = get.host.clone().unwrap_or_else(|| resolver.rules.instance_ip.to_string());
    let connector = (get.scheme == Scheme::Https).then(tls);
    let mut url = Url::probe(get.scheme, &authority(&host, get.port.get()), &get.path);
    for _ in 0..MAX_REQUESTS {
        let head =
            send_request(get, &url, &targets, connector.as_ref().map(|tls| (tls, host.as_str()))).await?;
        match redirect_target(&url, &head) {
            Some(next) => url = next,
            None if (200..400).contains(&head.status) => return Ok(()),
            None => {
                let text = format!("HTTP status {}", head.status);
                return Err(Unhealthy::new(HealthReason::HttpStatus, &text));
            }
        }
    }
    Err(Unhealthy::new(
        HealthReason::BadResponse,
        &format!("redirect loop, more than {MAX_REQUESTS} requests"),
    ))
}

/// Formats the authority, for example `10.0.0.7:8080` or `[fd00::7]:8080`.
fn authority(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// Returns the target of a redirect if its scheme, host and port are those of `url` and it can be
/// requested. Otherwise the response itself is the result.
fn redirect_target(url: &Url, head: &ResponseHead) -> Option<Url> {
    let location = head.location.as_deref().filter(|_| Redirect::is_redirect_status(head.status))?;
    let next = url.resolve(&Url::parse(location.trim_ascii())?);
    let is_same = next.scheme == url.scheme && is_same_host(&next, url) && next.port() == url.port();
    let is_sendable = !next.opaque && PathAndQuery::try_from(next.request_target()).is_ok();
    (is_same && is_sendable).then_some(next)
}

fn is_same_host(one: &Url, other: &Url) -> bool {
    let ip = |url: &Url| std::str::from_utf8(url.hostname()).ok()?.parse::<IpAddr>().ok();
    match (ip(one), ip(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.hostname().eq_ignore_ascii_case(other.hostname()),
    }
}

async fn send_request(
    get: &WorkloadHttpGet,
    url: &Url,
    targets: &[Target],
    tls: Option<(&TlsConnector, &str)>,
) -> Result<ResponseHead, Unhealthy> {
    let read = async |response: Response<Incoming>| -> Result<ResponseHead, Unhealthy> {
        let location = response.headers().get(LOCATION).map(|location| location.as_bytes().to_vec());
        Ok(ResponseHead { status: response.status().as_u16(), location })
    };
    let stream = target::connect(targets).await?;
    let Some((connector, host)) = tls else {
        return http_exchange::http1(stream, request(get, url, false)?, read).await;
    };
    let stream = tls::handshake(connector, stream, host).await?;
    if tls::is_h2(&stream) {
        http_exchange::http2(stream, request(get, url, true)?, read).await
    } else {
        http_exchange::http1(stream, request(get, url, false)?, read).await
    }
}

/// Builds a request with the declared headers, and with defaults for `Host`, `User-Agent` and
/// `Accept` if the probe does not declare them.
fn request(get: &WorkloadHttpGet, url: &Url, is_h2: bool) -> Result<Request<Empty<Bytes>>, Unhealthy> {
    let cannot =
        |what: &str| Unhealthy::new(HealthReason::CannotRun, &format!("the request cannot be sent: {what}"));
    let path = PathAndQuery::try_from(url.request_target()).map_err(|_| cannot("invalid path"))?;
    let authority = get.declared_host().map_or(url.host.as_slice(), str::as_bytes);
    let mut request = Request::builder();
    if is_h2 {
        let uri = Uri::builder().scheme(UriScheme::HTTPS).path_and_query(path);
        let authority = Authority::try_from(authority).map_err(|_| cannot("invalid Host header"))?;
        request = request.uri(uri.authority(authority).build().map_err(|_| cannot("invalid Host header"))?);
    } else {
        request = request.uri(Uri::from(path)).header(HOST, authority);
    }
    let declares = |name: &str| get.headers.iter().any(|header| header.has_name(name));
    for header in get.headers.iter().filter(|header| !header.has_name("host")) {
        request = request.header(header.name.as_str(), header.trimmed_value().as_bytes());
    }
    if !declares(USER_AGENT.as_str()) {
        request = request.header(USER_AGENT, USER_AGENT_VALUE);
    }
    if !declares(ACCEPT.as_str()) {
        request = request.header(ACCEPT, "*/*");
    }
    if !is_h2 {
        request = request.header(CONNECTION, "close");
    }
    request.body(Empty::new()).map_err(|_| cannot("invalid headers"))
}

#[cfg(test)]
mod tests;
