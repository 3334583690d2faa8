//! What to do about an error that kubelet reports instead of a status.

use probe::reason::Reason;

use super::{UNREACHABLE, of_reason, sentence};
use crate::destination::Destination;
use crate::wording::probe::ProbeError;

/// Advice, and whether it is more than a hint.
type Advice = (&'static str, bool);

const WAITS: &str = "raise timeoutSeconds, or find out what the application waits for";
const UNKNOWN: Advice = ("the message is that of the probe itself, and is not known here", false);

/// Returns what to do about an error that kubelet reports, and whether that is more than a hint.
pub(crate) fn of_error(error: ProbeError, destination: Destination) -> Advice {
    let of_connection = match destination {
        Destination::OtherHost => to_other_host(error),
        Destination::Sidecar => to_pod(error).or_else(|| to_sidecar(error)),
        Destination::Application | Destination::Command | Destination::Unknown => {
            to_pod(error).or_else(|| to_application(error))
        }
    };
    of_connection
        .or_else(|| of_tls(error))
        .or_else(|| of_http(error))
        .or_else(|| of_grpc(error))
        .unwrap_or_else(|| of_declaration(error, destination))
}

/// What keeps kubelet from the Pod, whichever of its containers listens.
fn to_pod(error: ProbeError) -> Option<Advice> {
    match error {
        ProbeError::NoRoute => Some((UNREACHABLE, true)),
        ProbeError::NodeResources => Some((
            "the node cannot open another connection: look at the open files of kubelet and at the local ports that are in use on the node",
            false,
        )),
        _ => None,
    }
}

fn to_sidecar(error: ProbeError) -> Option<Advice> {
    match error {
        ProbeError::ConnectTimeout => Some((UNREACHABLE, false)),
        ProbeError::Refused => Some((
            "the sidecar did not listen: Envoy has exited, or the Pod starts or ends. Read the log of the sidecar, with --previous",
            false,
        )),
        ProbeError::NoResponse => Some((
            "either the node does not reach the Pod (a NetworkPolicy, a firewall), or Envoy does not answer in time for lack of CPU: request the probe from the node, and look at the CPU of the sidecar",
            false,
        )),
        ProbeError::Closed | ProbeError::BodyBroken => Some((
            "the sidecar closed the connection: does --allow-from list the address of the node? Else read the log of the sidecar",
            false,
        )),
        _ => None,
    }
}

fn to_application(error: ProbeError) -> Option<Advice> {
    match error {
        ProbeError::ConnectTimeout => Some((
            "find out what blocks connections from the node to the Pod (a NetworkPolicy, a firewall, the network plugin), or whether the application is stuck and accepts no connections",
            false,
        )),
        ProbeError::Refused => Some((of_reason(Reason::Refused), true)),
        ProbeError::NoResponse => Some((WAITS, false)),
        ProbeError::Closed => Some((
            "the application crashed, uses another protocol on this port, or a proxy requires mutual TLS there",
            false,
        )),
        _ => None,
    }
}

/// The Pod takes no part in such a probe.
fn to_other_host(error: ProbeError) -> Option<Advice> {
    let is_of_host = error.is_of_network() && error != ProbeError::NodeResources;
    is_of_host.then_some((
        "kubelet sends the probe from the node to the host that it names, and localhost is the node: remove host to probe the Pod, or look at that host",
        true,
    ))
}

fn of_tls(error: ProbeError) -> Option<Advice> {
    match error {
        ProbeError::NotTls => {
            Some(("the port does not use TLS: remove scheme: HTTPS, or probe another port", true))
        }
        ProbeError::SpeaksTls => Some(("the port uses TLS: set scheme: HTTPS, or probe another port", true)),
        ProbeError::ClientCertificate => Some((
            "the server requires a client certificate, which kubelet does not have: let it accept this path without one, or probe another port",
            true,
        )),
        ProbeError::TlsVersion => Some((
            "the server supports no version of TLS that kubelet accepts: enable TLS 1.2 or newer",
            true,
        )),
        ProbeError::Tls => Some((sentence(Reason::Tls), false)),
        _ => None,
    }
}

fn of_http(error: ProbeError) -> Option<Advice> {
    match error {
        ProbeError::SpeaksHttp2 => Some((
            "the port serves HTTP/2 without TLS, for example gRPC, which an httpGet probe does not use: declare a grpc probe, or probe another port",
            true,
        )),
        ProbeError::NotHttp => {
            Some(("the port serves another protocol than HTTP: use tcpSocket, or probe another port", true))
        }
        ProbeError::Http2 => Some((
            "the server ended the HTTP/2 stream or connection before it had responded: look at the application's log",
            false,
        )),
        ProbeError::BodyTimeout => Some((
            "the response has begun, but its body did not end within timeoutSeconds: raise it, or probe a page with a short body",
            true,
        )),
        ProbeError::BodyBroken => Some((
            "the connection ended within the body of the response: compare its Content-Length with its length, and look at the application's log",
            false,
        )),
        ProbeError::Redirect => {
            Some(("point the probe at the final page: kubelet does not follow this redirect", true))
        }
        _ => None,
    }
}

fn of_grpc(error: ProbeError) -> Option<Advice> {
    match error {
        ProbeError::GrpcConnect => Some((
            "check the port: does the application serve gRPC there, without TLS, and on the Pod's address, not on 127.0.0.1 only? Else find out what blocks connections from the node to the Pod (a NetworkPolicy, a firewall, the network plugin)",
            false,
        )),
        ProbeError::GrpcProtocol => {
            Some(("does the port serve gRPC, and without TLS, which kubelet does not use for it?", false))
        }
        ProbeError::GrpcCredentials => Some((
            "the server requires credentials for the health check: let it answer grpc.health.v1.Health without them",
            true,
        )),
        ProbeError::GrpcStatus => {
            Some(("the health check ends with a gRPC status: look at the application's log", false))
        }
        ProbeError::GrpcUnimplemented => Some((of_reason(Reason::GrpcUnimplemented), true)),
        ProbeError::GrpcNotServing => Some((of_reason(Reason::GrpcNotServing), true)),
        ProbeError::GrpcUnknown => Some((sentence(Reason::GrpcUnknown), true)),
        ProbeError::GrpcServiceUnknown => Some((of_reason(Reason::GrpcServiceUnknown), true)),
        _ => None,
    }
}

fn of_declaration(error: ProbeError, destination: Destination) -> Advice {
    match (error, destination) {
        (ProbeError::NamedPort, _) => {
            ("no port of the container has this name: add it to ports, or correct the probe", true)
        }
        (ProbeError::HostName, _) => {
            ("the node cannot resolve the host of the probe: correct host, or remove it", true)
        }
        (ProbeError::CommandTimeout, _) => {
            ("the command takes longer than timeoutSeconds: raise it, or make the command faster", true)
        }
        (ProbeError::NoCommand, _) => {
            ("correct the command of the probe: it is not in the image, or not executable", true)
        }
        (ProbeError::Runtime, _) => (
            "the runtime could not run the command, and the message says why: did the container just stop? Else look at the node and its runtime",
            false,
        ),
        (ProbeError::NoOutput, _) => (
            "the command failed without any output, or did not end within timeoutSeconds: run it in the container, and look how long it takes",
            false,
        ),
        (ProbeError::Other, Destination::Command) => {
            ("the message is the output of the command: run it in the container", true)
        }
        _ => UNKNOWN,
    }
}
