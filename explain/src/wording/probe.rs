//! What kubelet says about a failed probe.

use super::matches;

/// Where the attempt of kubelet ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeError {
    /// The response has this HTTP status.
    Status(u16),
    /// The packets of kubelet find no way to the Pod.
    NoRoute,
    /// The node has no local port or kubelet no file descriptor left for the connection.
    NodeResources,
    /// No connection in time, or for a reason that is not known: packets are lost, or the server
    /// does not accept connections.
    ConnectTimeout,
    /// The connection was refused: nothing listens there, or a firewall rejects it.
    Refused,
    /// No response in time. Go reports the same whether or not there was a connection.
    NoResponse,
    /// The other side reset or closed the connection before it had responded.
    Closed,
    /// The response has begun, but its body did not end in time.
    BodyTimeout,
    /// The connection ended within the body of the response.
    BodyBroken,
    /// The response is a redirect that kubelet does not follow.
    Redirect,
    /// The server does not speak TLS.
    NotTls,
    /// The server speaks TLS: its response is an alert.
    SpeaksTls,
    /// The server speaks HTTP/2, as gRPC does: its response is a SETTINGS frame.
    SpeaksHttp2,
    /// The server does not speak HTTP.
    NotHttp,
    /// The server has ended the HTTP/2 stream or connection.
    Http2,
    /// The server refuses a client without a certificate.
    ClientCertificate,
    /// The server speaks no version of TLS that Go accepts.
    TlsVersion,
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
    /// The runtime could not run the command.
    Runtime,
    /// The command failed without any output. Older versions of kubelet report the same of one that
    /// did not end in time.
    NoOutput,
    /// No gRPC connection in time. kubelet dials with `grpc.WithBlock()`, which tries again until
    /// the server has sent its HTTP/2 settings, so it reports the same for a refused port, for
    /// another protocol and for lost packets.
    GrpcConnect,
    /// The server has no gRPC health service.
    GrpcUnimplemented,
    /// The gRPC health status is NOT_SERVING.
    GrpcNotServing,
    /// The gRPC health status is UNKNOWN.
    GrpcUnknown,
    /// The server does not speak HTTP/2 without TLS.
    GrpcProtocol,
    /// The server refuses the call for lack of credentials.
    GrpcCredentials,
    /// The call ends with another gRPC status.
    GrpcStatus,
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
    ("service unhealthy (responded with \"SERVICE_UNKNOWN\")", GRPC, ProbeError::GrpcServiceUnknown),
    ("service unhealthy (responded with \"UNKNOWN\")", GRPC, ProbeError::GrpcUnknown),
    ("service unhealthy (responded with \"*\")", GRPC, ProbeError::GrpcNotServing),
    (
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): *",
        GRPC,
        ProbeError::GrpcUnimplemented,
    ),
    ("error: health rpc probe failed: rpc error: code = NotFound *", GRPC, ProbeError::GrpcServiceUnknown),
    (
        "error: health rpc probe failed: rpc error: code = Unauthenticated *",
        GRPC,
        ProbeError::GrpcCredentials,
    ),
    (
        "error: health rpc probe failed: rpc error: code = PermissionDenied *",
        GRPC,
        ProbeError::GrpcCredentials,
    ),
    ("*rpc error: code = Unavailable *error reading server preface: *", GRPC, ProbeError::GrpcProtocol),
    ("*rpc error: code = Unavailable *dial tcp *: connect: connection refused*", GRPC, ProbeError::Refused),
    ("error: health rpc probe failed: rpc error: code = Unavailable *", GRPC, ProbeError::GrpcConnect),
    ("error: health rpc probe failed: *", GRPC, ProbeError::GrpcStatus),
    ("timeout: health rpc did not complete within *", GRPC, ProbeError::NoResponse),
    ("timeout: failed to connect service *: context deadline exceeded", GRPC, ProbeError::GrpcConnect),
    ("error: failed to connect service at *: *", GRPC, ProbeError::GrpcConnect),
    ("command \"*\" timed out*", EXEC, ProbeError::CommandTimeout),
    ("command timed out*", EXEC, ProbeError::CommandTimeout),
    ("rpc error: code = DeadlineExceeded desc = *command *timed out*", EXEC, ProbeError::CommandTimeout),
    (
        "rpc error: code = DeadlineExceeded desc = failed to exec in container: timeout * exceeded: *",
        EXEC,
        ProbeError::CommandTimeout,
    ),
    ("*exec failed: *: executable file not found in $PATH*", EXEC, ProbeError::NoCommand),
    // Other files than that of the command may be missing too, for example the cgroup of the Pod.
    ("*exec failed: *exec: *: no such file or directory*", EXEC, ProbeError::NoCommand),
    ("*exec failed: *: exec /*: no such file or directory*", EXEC, ProbeError::NoCommand),
    ("*exec failed: *exec: *: permission denied*", EXEC, ProbeError::NoCommand),
    ("*exec failed: *: exec /*: permission denied*", EXEC, ProbeError::NoCommand),
    ("OCI runtime exec failed: *", EXEC, ProbeError::Runtime),
    ("*dial tcp *: connect: no route to host*", HTTP, ProbeError::NoRoute),
    ("*dial tcp *: connect: host is down*", HTTP, ProbeError::NoRoute),
    ("*dial tcp *: connect: network is unreachable*", HTTP, ProbeError::NoRoute),
    // A rule of the node's own firewall.
    ("*dial tcp *: connect: operation not permitted*", HTTP, ProbeError::NoRoute),
    ("*dial tcp *: connect: cannot assign requested address*", HTTP, ProbeError::NodeResources),
    ("*dial tcp *: socket: *", HTTP, ProbeError::NodeResources),
    ("*dial tcp *: connect: connection timed out*", HTTP, ProbeError::ConnectTimeout),
    ("*dial tcp *: i/o timeout*", HTTP, ProbeError::ConnectTimeout),
    ("Get \"*\": net/http: request canceled while waiting for connection*", HTTP, ProbeError::ConnectTimeout),
    ("*dial tcp *: connect: connection refused*", HTTP, ProbeError::Refused),
    ("*dial tcp *: connect: *", HTTP, ProbeError::ConnectTimeout),
    ("*dial tcp: lookup *", HTTP, ProbeError::HostName),
    ("Get \"*\": remote error: tls: certificate required", TLS, ProbeError::ClientCertificate),
    ("Get \"*\": remote error: tls: bad certificate", TLS, ProbeError::ClientCertificate),
    ("Get \"*\": remote error: tls: protocol version not supported", TLS, ProbeError::TlsVersion),
    ("Get \"*\": remote error: tls: *", TLS, ProbeError::Tls),
    ("Get \"*\": tls: server selected unsupported protocol version *", TLS, ProbeError::TlsVersion),
    ("Get \"*\": tls: *", TLS, ProbeError::Tls),
    ("Get \"*\": http: server gave HTTP response to HTTPS client", HTTP, ProbeError::NotTls),
    // Go writes the bytes as it would in its source.
    ("Get \"*\": *: malformed HTTP response \"\\x15\\x03*", HTTP, ProbeError::SpeaksTls),
    ("Get \"*\": *: malformed HTTP response \"\\x00\\x00*\\x04\\x00*", HTTP, ProbeError::SpeaksHttp2),
    ("Get \"*\": net/http: HTTP/1.x transport connection broken: malformed *", HTTP, ProbeError::NotHttp),
    ("Get \"*\": stream error: stream ID *; *; received from peer", HTTP, ProbeError::Http2),
    ("Get \"*\": http2: server sent GOAWAY and closed the connection; *", HTTP, ProbeError::Http2),
    ("Get \"*\": stopped after 10 redirects", HTTP, ProbeError::Redirect),
    ("Get \"*\": failed to parse Location header \"*\": *", HTTP, ProbeError::Redirect),
    ("*(Client.Timeout or context cancellation while reading body)", HTTP, ProbeError::BodyTimeout),
    ("Get \"*\": *(Client.Timeout exceeded while awaiting headers)", HTTP, ProbeError::NoResponse),
    ("Get \"*\": context deadline exceeded", HTTP, ProbeError::NoResponse),
    ("Get \"*\": EOF", HTTP, ProbeError::Closed),
    ("Get \"*\": unexpected EOF", HTTP, ProbeError::Closed),
    // The connection breaks while kubelet reads the body.
    ("read tcp *: connection reset by peer", HTTP, ProbeError::Closed),
    ("unexpected EOF", HTTP, ProbeError::BodyBroken),
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
        matches!(self, Self::NoRoute | Self::NodeResources | Self::ConnectTimeout)
    }

    /// Returns true if the probe fails in the same way however long the application has run: it does
    /// not fit what the port serves, or the container.
    pub(crate) fn is_of_declaration(self) -> bool {
        matches!(
            self,
            Self::NotTls
                | Self::SpeaksTls
                | Self::SpeaksHttp2
                | Self::NotHttp
                | Self::TlsVersion
                | Self::ClientCertificate
                | Self::Redirect
                | Self::NamedPort
                | Self::HostName
                | Self::NoCommand
                | Self::GrpcUnimplemented
                | Self::GrpcCredentials
        )
    }

    /// Returns true if the attempt got no response of the other side at all.
    pub(crate) fn is_of_network(self) -> bool {
        self.is_of_packets() || matches!(self, Self::Refused | Self::NoResponse | Self::Closed)
    }
}
