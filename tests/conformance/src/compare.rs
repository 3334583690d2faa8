//! Compares a direct probe with one through the filter.

use std::fmt;

use super::case::Case;
use super::seen::{Request, Seen, show};
use kit::oracle::{Answer, ProbeResult};
use kit::pod::{self, Form};

/// The result that kubelet derives from a probe (`pkg/kubelet/prober/worker.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Success, with or without a warning.
    Success,
    Failure,
    /// An error of the prober: kubelet discards the probe and does not count it.
    Error,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Error => "error",
        })
    }
}

/// One side of a comparison: the output of kubelet's prober, and the requests that the application
/// received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub verdict: Verdict,
    /// The status that kubelet printed: 520 in `HTTP probe failed with statuscode: 520`.
    pub status: Option<u16>,
    /// The complete output of the prober.
    pub output: String,
    /// The requests, with ports replaced by their names.
    pub seen: Seen,
}

impl Side {
    pub fn new(answer: &Answer, seen: &Seen, ports: &[(String, String)]) -> Self {
        let verdict = match (&answer.error, answer.result) {
            (Some(_), _) | (None, ProbeResult::Unknown) => Verdict::Error,
            (None, ProbeResult::Success | ProbeResult::Warning) => Verdict::Success,
            (None, ProbeResult::Failure) => Verdict::Failure,
        };
        let status = answer.output.strip_prefix("HTTP probe failed with statuscode: ");
        let mut output = answer.error.clone().unwrap_or_else(|| answer.output.clone());
        for (name, port) in ports {
            output = output.replace(&format!(":{port}"), &format!(":{{{name}}}"));
        }
        let status = status.and_then(|status| status.parse().ok());
        let mut side = Self { verdict, status, output, seen: Vec::new() };
        side.see(seen, ports);
        side
    }

    /// Replaces the recorded requests.
    pub fn see(&mut self, seen: &Seen, ports: &[(String, String)]) {
        let named = |requests: &Vec<Request>| requests.iter().map(|request| request.named(ports)).collect();
        self.seen = seen.iter().map(named).collect();
    }

    /// Returns the verdict, and the status if there is one.
    pub fn short(&self) -> String {
        self.status.map_or_else(|| self.verdict.to_string(), |status| format!("{} {status}", self.verdict))
    }
}

/// The difference between a direct probe and one through the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Verdict,
    /// The application received different requests or connections.
    Requests,
    /// Requests differ only in headers that Envoy must not send over HTTP/2 and therefore omits for
    /// every TLS port.
    ConnectionHeaders,
}

/// Headers that HTTP/2 forbids, or that Go sends over HTTP/2 but not over HTTP/1.1.
const OF_A_CONNECTION: [&str; 5] = ["Connection", "Keep-Alive", "Upgrade", "Proxy-Connection", "Trailer"];

/// Compares both sides; returns `None` if they are equal.
pub fn difference(case: &Case, direct: &Side, through: &Side) -> Option<Difference> {
    if direct.verdict != through.verdict {
        return Some(Difference::Verdict);
    }
    // Requests are compared only for HTTP probes; an application does not depend on those of TCP
    // and gRPC probes. Istio's agent adds headers to all of them.
    let compares_requests = case.probe.http_get.is_some() && pod::form() != Form::PilotAgent;
    if !compares_requests || direct.seen == through.seen {
        return None;
    }
    let without = |seen: &Seen| -> Seen {
        let requests = |requests: &Vec<Request>| -> Vec<Request> {
            requests.iter().map(|request| request.without(&OF_A_CONNECTION)).collect()
        };
        seen.iter().map(requests).collect()
    };
    let only_those = without(&direct.seen) == without(&through.seen);
    Some(if only_those && case.uses_tls() { Difference::ConnectionHeaders } else { Difference::Requests })
}

/// Formats both sides for a report.
pub fn describe(direct: &Side, through: &Side) -> String {
    let side = |name: &str, side: &Side| {
        format!("  {name}: {}: {:?}\n    saw {}\n", side.verdict, side.output, show(&side.seen))
    };
    side("direct ", direct) + &side("through", through)
}
