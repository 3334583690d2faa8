//! `httpGet` probes: requests until a response is final, and then its body, within one timeout.

use probe::{ProxyPorts, Reason, Redirect, Request};
use tokio::time::{Instant, timeout_at};

use crate::dial::Target;
use crate::ended::Ended;
use crate::exchange::Client;

/// How much of a body kubelet reads before it decides (`maxRespBodyLength` in `pkg/probe/http/http.go`).
const BODY_BYTES: usize = 10 << 10;
/// How much of a redirect's body Go's client reads before it follows it (`maxBodySlurpSize` of
/// `net/http`), if the body is not known to be longer.
const REDIRECT_BODY_BYTES: usize = 2 << 10;

/// What all requests of a probe have in common.
#[derive(Clone, Copy)]
pub struct HttpProbe<'a> {
    pub client: &'a Client,
    pub target: Target,
    /// The address of the target as in a URL, without brackets.
    pub pod_ip: &'a str,
    /// The ports that a redirect must not reach.
    pub proxy_ports: &'a ProxyPorts,
    /// The `User-Agent` of requests for which the Pod declares none.
    pub user_agent: &'a [u8],
}

/// Runs a probe that begins with `first`, until `deadline`.
pub async fn http_get(probe: HttpProbe<'_>, first: &Request, deadline: Instant) -> Ended {
    let mut followed: Option<Box<Request>> = None;
    let mut requests = 1;
    loop {
        let request = followed.as_deref().unwrap_or(first);
        let sent = timeout_at(deadline, probe.client.send(probe.target, request, probe.user_agent)).await;
        let mut response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(reason)) => return Ended::by(reason),
            Err(_) => return Ended::by(Reason::Timeout),
        };
        let (status, location) = (response.status, response.location.as_deref());
        let HttpProbe { pod_ip, proxy_ports, .. } = probe;
        // Go's client sends any URL.
        match Redirect::decide(request, status, location, requests, pod_ip, proxy_ports) {
            Redirect::Final => {
                let ended = Ended::of_status(status);
                return match timeout_at(deadline, response.body.read_at_most(BODY_BYTES)).await {
                    Ok(Ok(())) => ended,
                    Ok(Err(_)) => ended.broken(),
                    // After a change of protocols kubelet waits without a timeout, and the status counts.
                    Err(_) if status == 101 => ended,
                    Err(_) => ended.broken(),
                };
            }
            Redirect::Invalid => return Ended::by(Reason::Redirect),
            Redirect::Follow(next) => {
                if response.body.may_be_short(REDIRECT_BODY_BYTES) {
                    // Go's client ignores errors here.
                    let read = timeout_at(deadline, response.body.read_at_most(REDIRECT_BODY_BYTES)).await;
                    if read.is_err() {
                        return Ended::by(Reason::Timeout);
                    }
                }
                followed = Some(next);
                requests += 1;
            }
        }
    }
}
