//! What kubelet says about a failed probe.

use super::matches;

/// Where the attempt of kubelet ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeError {
    /// The response has this HTTP status.
    Status(u16),
    /// The packets of kubelet find no way to the Pod.
    NoRoute,
    /// No connection in time: packets are lost, or the server does not accept connections.
    ConnectTimeout,
    /// The connection was refused: nothing listens there, or a firewall rejects it.
    Refused,
    /// No response in time. Go reports the same whether or not there was a connection.
    NoResponse,
    /// The other side reset or closed the connection before it had responded.
    Closed,
    /// The server does not speak TLS.
    NotTls,
    /// The server speaks TLS, or no HTTP at all.
    NotHttp,
    /// The server refuses a client without a certificate.
    ClientCertificate,
    /// The TLS handshake failed otherwise.
    Tls,
    /// The name of the port is not declared by the container.
    NamedPort,
    /// The name of the probe's host does not exist.
    HostName,
    /// The command did not end in time.
    CommandTimeout,
    /// The command cannot be executed in the container.
    NoCommand,
    /// No gRPC connection in time. kubelet dials with `grpc.WithBlock()`, which tries again until
    /// the server has sent its HTTP/2 settings, so it reports the same for a refused port, for
    /// another protocol and for lost packets.
    GrpcConnect,
    /// The server has no gRPC health service.
    GrpcUnimplemented,
    /// The gRPC health status is another one than SERVING.
    GrpcNotServing,
    /// The server does not know the service.
    GrpcServiceUnknown,
    /// The output of the command, or a message that is not known.
    Other,
}

const HTTP: &str = "pkg/probe/http/http.go and Go, net and net/http";
const GRPC: &str = "pkg/probe/grpc/grpc.go";
const EXEC: &str = "pkg/probe/exec/exec.go and the runtime";
const TLS: &str = "Go, crypto/tls";

/// Patterns of what follows `Readiness probe failed: `, the most special first, with the source that
/// writes them.
pub(crate) const TABLE: &[(&str, &str, ProbeError)] = &[
    ("strconv.Atoi: parsing \"*\": invalid syntax", "pkg/probe/util.go", ProbeError::NamedPort),
    ("invalid port number: *", "pkg/probe/util.go", ProbeError::NamedPort),
    ("service unhealthy (responded with \"*\")", GRPC, ProbeError::GrpcNotServing),
    (
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): *",
        GRPC,
        ProbeError::GrpcUnimplemented,
    ),
    ("error: health rpc probe failed: rpc error: code = NotFound *", GRPC, ProbeError::GrpcServiceUnknown),
    ("timeout: health rpc did not complete within *", GRPC, ProbeError::NoResponse),
    ("timeout: failed to connect service *: context deadline exceeded", GRPC, ProbeError::GrpcConnect),
    ("command \"*\" timed out*", EXEC, ProbeError::CommandTimeout),
    ("command timed out*", EXEC, ProbeError::CommandTimeout),
    ("rpc error: code = DeadlineExceeded desc = *command *timed out*", EXEC, ProbeError::CommandTimeout),
    (
        "rpc error: code = DeadlineExceeded desc = failed to exec in container: timeout * exceeded: *",
        EXEC,
        ProbeError::CommandTimeout,
    ),
    ("*exec failed: *: executable file not found in $PATH*", EXEC, ProbeError::NoCommand),
    ("*exec failed: *: no such file or directory*", EXEC, ProbeError::NoCommand),
    ("*exec failed: *: permission denied*", EXEC, ProbeError::NoCommand),
    ("*dial tcp *: connect: no route to host*", HTTP, ProbeError::NoRoute),
    ("*dial tcp *: connect: host is down*", HTTP, ProbeError::NoRoute),
    ("*dial tcp *: connect: network is unreachable*", HTTP, ProbeError::NoRoute),
    ("*dial tcp *: connect: connection timed out*", HTTP, ProbeError::ConnectTimeout),
    ("*dial tcp *: i/o timeout*", HTTP, ProbeError::ConnectTimeout),
    ("Get \"*\": net/http: request canceled while waiting for connection*", HTTP, ProbeError::ConnectTimeout),
    ("*dial tcp *: connect: connection refused*", HTTP, ProbeError::Refused),
    ("*dial tcp: lookup *", HTTP, ProbeError::HostName),
    ("Get \"*\": remote error: tls: certificate required", TLS, ProbeError::ClientCertificate),
    ("Get \"*\": remote error: tls: bad certificate", TLS, ProbeError::ClientCertificate),
    ("Get \"*\": remote error: tls: *", TLS, ProbeError::Tls),
    ("Get \"*\": tls: *", TLS, ProbeError::Tls),
    ("Get \"*\": http: server gave HTTP response to HTTPS client", HTTP, ProbeError::NotTls),
    (
        "Get \"*\": net/http: HTTP/1.x transport connection broken: malformed HTTP *",
        HTTP,
        ProbeError::NotHttp,
    ),
    ("Get \"*\": *(Client.Timeout exceeded while awaiting headers)", HTTP, ProbeError::NoResponse),
    ("Get \"*\": context deadline exceeded", HTTP, ProbeError::NoResponse),
    ("Get \"*\": EOF", HTTP, ProbeError::Closed),
    // The connection breaks while kubelet reads the body.
    ("read tcp *: connection reset by peer", HTTP, ProbeError::Closed),
    ("unexpected EOF", HTTP, ProbeError::Closed),
    ("Get \"*\": read tcp *: connection reset by peer", HTTP, ProbeError::Closed),
    ("Get \"*\": write tcp *: broken pipe", HTTP, ProbeError::Closed),
    ("*read tcp *: i/o timeout*", HTTP, ProbeError::NoResponse),
];

impl ProbeError {
    /// Reads what follows `Readiness probe failed: ` in an event.
    pub(crate) fn of(message: &str) -> Self {
        let status = message.strip_prefix("HTTP probe failed with statuscode: ");
        if let Some(status) = status.and_then(|status| status.trim().parse().ok()) {
            return Self::Status(status);
        }
        let known = TABLE.iter().find(|(pattern, _, _)| matches(pattern, message.trim()));
        known.map_or(Self::Other, |(_, _, error)| *error)
    }

    /// Returns true if the attempt ended before there was a connection.
    pub(crate) fn is_of_packets(self) -> bool {
        matches!(self, Self::NoRoute | Self::ConnectTimeout)
    }

    /// Returns true if the attempt got no response of the other side at all.
    pub(crate) fn is_of_network(self) -> bool {
        matches!(self, Self::NoRoute | Self::ConnectTimeout | Self::Refused | Self::NoResponse | Self::Closed)
    }
}
