//! What to do about each reason of a failed probe. A test compares it with docs/answers.md.

mod probe_error;

use probe::reason::Reason;

pub(crate) use probe_error::of_error;

/// What to do if packets between the node and the Pod are lost.
pub(crate) const UNREACHABLE: &str = "find out what blocks connections from the node to the Pod: a NetworkPolicy, a firewall of the node, or the network plugin";

/// Returns the column "what to do" of docs/answers.md; empty for a success.
pub(crate) fn of_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Ok => "",
        Reason::OkRedirect => "point the probe at the final page",
        Reason::Application => "look at the application's log",
        Reason::BadRequest => "kubelet sends neither: find out which client sent it",
        Reason::Forbidden => "if it is kubelet, allow its address",
        Reason::UnknownProbe => "compare the path with ISTIO_KUBE_APP_PROBERS, byte for byte",
        Reason::Method => "kubelet sends GET: find out which client sent it",
        Reason::Busy => "the application answers more slowly than this client probes; raise periodSeconds",
        Reason::Refused => {
            "check the port. Does the application listen on the Pod's address, or on 127.0.0.1 only?"
        }
        Reason::Overloaded => "many slow probes run at once: look at their timeouts",
        Reason::Timeout => "raise it, or find out what the application waits for",
        Reason::Closed => {
            "the application crashed, uses another protocol on this port, or, over https, requires a client certificate"
        }
        Reason::GrpcNotServing => "look at the application's log",
        Reason::GrpcUnknown => "the server has not set its status yet",
        Reason::GrpcServiceUnknown => "compare service with what the server registers",
        Reason::GrpcUnimplemented => "register grpc.health.v1.Health",
        Reason::Tls => "does the port support TLS 1.2 or newer, and accept clients without a certificate?",
        Reason::GrpcError => "another gRPC status, a malformed frame, or no gRPC at all",
        Reason::Protocol => {
            "the application uses another protocol, its headers are truncated, or they exceed 1 MiB or 1000 lines"
        }
        Reason::Redirect => "more than ten requests, an invalid Location, or a port of the proxy",
        Reason::Unreachable => "is the Pod's address correct? For IPv6: is ::6 an address of lo?",
        Reason::Configuration => "compare your configuration with the rendered bootstrap",
    }
}

/// Returns the advice as it is shown without the rest of the page's row, to which "it" may refer.
pub(crate) fn sentence(reason: Reason) -> &'static str {
    match reason {
        Reason::Timeout => "raise timeoutSeconds, or find out what the application waits for",
        Reason::GrpcUnknown => "the server has not set its status yet: does it set it at all?",
        Reason::Closed => "the application crashed, or uses another protocol on this port",
        Reason::GrpcError => {
            "does the port serve gRPC? It is another gRPC status, a malformed frame, or no gRPC at all"
        }
        Reason::Redirect => {
            "point the probe at the final page: it is more than ten requests, an invalid Location, or a port of the proxy"
        }
        reason => of_reason(reason),
    }
}

/// Returns what to do about a status of the application itself, and whether that is more than a hint. Behind a
/// sidecar, the application sees another client.
pub(crate) fn of_application(status: u16, has_sidecar: bool) -> (&'static str, bool) {
    match status {
        400 => (
            "the application rejects the request: does the port require scheme: HTTPS, or does the application check the header Host? See its log",
            false,
        ),
        401 => ("the application refuses the probe: let it answer this path without credentials", true),
        403 if has_sidecar => (
            "the application refuses the probe: let it answer this path without credentials and to any client, because behind a sidecar it sees 127.0.0.6 or ::6 and not the node; a web server also answers so for a directory without an index",
            false,
        ),
        403 => (
            "the application refuses the probe: let it answer this path without credentials; a web server also answers so for a directory without an index",
            false,
        ),
        404 => ("compare the path of the probe with those of the application", true),
        405 => ("kubelet sends GET: let the application answer it on this path", true),
        _ => (of_reason(Reason::Application), true),
    }
}

/// Returns the reason of a status that only the filter sends.
pub(crate) fn reason_of_status(status: u16) -> Reason {
    let sent_by_applications = [400, 403, 404, 405, 503];
    let own = Reason::ALL.into_iter().filter(|reason| !reason.is_success() && *reason != Reason::Application);
    let mut matching =
        own.filter(|reason| reason.status() == status && !sent_by_applications.contains(&status));
    matching.next().unwrap_or(Reason::Application)
}

/// Returns the reason with which a response body of the filter begins: `refused: nothing …`.
pub(crate) fn reason_of_body(status: u16, body: &str) -> Option<Reason> {
    let (word, _) = body.split_once(':')?;
    Reason::ALL.into_iter().find(|reason| reason.word() == word && reason.status() == status)
}

#[cfg(test)]
mod tests;
