//! `httpGet` probes: a GET request, decided by the status of the final response as soon as its
//! headers arrive. Each request, including redirects, uses a new connection.

use std::net::IpAddr;

use probe::url::Url;
use probe::{HttpGet, Reason, Redirect, Request, Scheme};
use prober::connected::{ATTEMPTS, Head, Stream, Unanswered, http1_head, http2_head};
use tokio_rustls::TlsConnector;
use workload_health::{HealthReason, Unhealthy, WorkloadHttpGet};

use super::target::{self, Target, TargetResolver};
use super::tls;

/// Limit of requests per probe, including the first one.
const MAX_REQUESTS: u32 = 10;
/// User-Agent of probes that do not declare one.
pub(super) const USER_AGENT: &str = concat!("app-health-agent/", env!("CARGO_PKG_VERSION"));

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
    let mut request = request(get, &host);
    for _ in 0..MAX_REQUESTS {
        let head = send(&request, &targets, connector.as_ref().map(|tls| (tls, host.as_str()))).await?;
        match redirect_target(&request.url, &head) {
            Some(next) => request.url = next,
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

/// Returns the first request of a probe.
fn request(get: &WorkloadHttpGet, host: &str) -> Request {
    let WorkloadHttpGet { path, port, scheme, headers, .. } = get.clone();
    let port = port.get();
    Request::new(&HttpGet { path, port, scheme, headers }, &authority(host, port))
}

/// Formats the authority, for example `10.0.0.7:8080` or `[fd00::7]:8080`.
fn authority(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// Returns the target of a redirect if its scheme, host and port are those of `url`. Otherwise the
/// response itself is the result.
fn redirect_target(url: &Url, head: &Head) -> Option<Url> {
    let location = head.location.as_deref().filter(|_| Redirect::is_redirect_status(head.status))?;
    let next = url.resolve(&Url::parse(location.trim_ascii())?);
    let is_same = next.scheme == url.scheme && is_same_host(&next, url) && next.port() == url.port();
    (is_same && !next.opaque).then_some(next)
}

fn is_same_host(one: &Url, other: &Url) -> bool {
    let ip = |url: &Url| std::str::from_utf8(url.hostname()).ok()?.parse::<IpAddr>().ok();
    match (ip(one), ip(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.hostname().eq_ignore_ascii_case(other.hostname()),
    }
}

/// Sends a request on a new connection.
async fn send(
    request: &Request,
    targets: &[Target],
    tls: Option<(&TlsConnector, &str)>,
) -> Result<Head, Unhealthy> {
    let Some((connector, host)) = tls else {
        let mut stream = Stream::Plaintext(target::connect(targets).await?);
        return http1_head(&mut stream, request, USER_AGENT.as_bytes()).await.map_err(without_response);
    };
    for _ in 0..ATTEMPTS {
        let (mut stream, is_http2) = tls::handshake(connector, target::connect(targets).await?, host).await?;
        let sent = if is_http2 {
            http2_head(&mut stream, request, USER_AGENT.as_bytes()).await
        } else {
            let sent = http1_head(&mut stream, request, USER_AGENT.as_bytes()).await;
            sent.map_err(Unanswered::Failed)
        };
        match sent {
            Ok(head) => return Ok(head),
            Err(Unanswered::Unprocessed) => {}
            Err(Unanswered::Failed(reason)) => {
                return Err(tls::failure(&mut stream).unwrap_or_else(|| without_response(reason)));
            }
        }
    }
    Err(target::broken_off())
}

fn without_response(reason: Reason) -> Unhealthy {
    match reason {
        Reason::Closed => target::broken_off(),
        reason => Unhealthy::new(HealthReason::BadResponse, reason.text()),
    }
}

#[cfg(test)]
mod tests;
