//! The results of a Kubernetes probe with their words, statuses and texts.
//!
//! They are public interfaces: users see the status in `kubectl describe`, and the word in metrics
//! and logs. A change needs an entry in the changelog.

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The application responded with 200 to 299, accepted the connection, or is SERVING.
    Ok,
    /// The response is a 3xx that is not followed; kubelet treats it as success with a warning
    /// event.
    OkRedirect,
    /// The application responded with 400 to 599.
    Application,
    /// The probe's request has a body.
    BadRequest,
    /// The client may not call lifecycle hooks.
    Forbidden,
    /// The path is not declared in the probers.
    UnknownProbe,
    /// The probe's request is not a GET.
    Method,
    /// Too many probes of the same prober are in flight.
    Busy,
    /// The connection to the declared port was refused.
    Refused,
    /// Envoy's limit on probe connections is reached.
    Overloaded,
    /// The application did not respond within the declared timeout.
    Timeout,
    /// The application closed or reset the connection before it had sent all headers.
    Closed,
    /// The gRPC health status is NOT_SERVING.
    GrpcNotServing,
    /// The gRPC health status is UNKNOWN, missing, or a number that the protocol does not define.
    GrpcUnknown,
    /// The gRPC server does not know the service.
    GrpcServiceUnknown,
    /// The gRPC server does not implement the health service.
    GrpcUnimplemented,
    /// The TLS handshake failed.
    Tls,
    /// The response is not a valid gRPC health response.
    GrpcError,
    /// The response is not a valid HTTP response.
    Protocol,
    /// The redirect cannot be followed.
    Redirect,
    /// The Pod's address cannot be reached.
    Unreachable,
    /// Envoy lacks a cluster, a route or a foreign function that the probe needs.
    Configuration,
}

impl Reason {
    /// All reasons, in the order of the table in the documentation.
    pub const ALL: [Self; 22] = [
        Self::Ok,
        Self::OkRedirect,
        Self::Application,
        Self::BadRequest,
        Self::Forbidden,
        Self::UnknownProbe,
        Self::Method,
        Self::Busy,
        Self::Refused,
        Self::Overloaded,
        Self::Timeout,
        Self::Closed,
        Self::GrpcNotServing,
        Self::GrpcUnknown,
        Self::GrpcServiceUnknown,
        Self::GrpcUnimplemented,
        Self::Tls,
        Self::GrpcError,
        Self::Protocol,
        Self::Redirect,
        Self::Unreachable,
        Self::Configuration,
    ];

    /// Returns the word for responses, metrics and logs.
    pub fn word(self) -> &'static str {
        self.row().0
    }

    /// Returns the HTTP status that kubelet receives. For [`Reason::Application`], the
    /// application's own status is sent instead.
    pub fn status(self) -> u16 {
        self.row().1
    }

    /// Returns a description in one line, empty for a success. It contains nothing that the
    /// application or the client sent.
    pub fn text(self) -> &'static str {
        self.row().2
    }

    /// Returns true if kubelet treats the probe as successful.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Ok | Self::OkRedirect)
    }

    /// Returns true if the client's request was malformed or not allowed, so the result says nothing
    /// about the application.
    pub fn is_client_error(self) -> bool {
        matches!(self, Self::BadRequest | Self::Forbidden | Self::UnknownProbe | Self::Method)
    }

    /// Returns the response body: `<word>: <text>`, or nothing if there is no text.
    pub fn body(self) -> String {
        match self.row() {
            (_, _, "") => String::new(),
            (word, _, text) => format!("{word}: {text}"),
        }
    }

    fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::Ok => ("ok", 200, ""),
            Self::OkRedirect => ("ok_redirect", 200, ""),
            Self::Application => ("application", 500, ""),
            Self::BadRequest => ("bad_request", 400, "a probe must not have a body"),
            Self::Forbidden => ("forbidden", 403, "the client may not call hooks"),
            Self::UnknownProbe => ("unknown_probe", 404, "no such probe is declared"),
            Self::Method => ("method", 405, "only GET is allowed"),
            Self::Busy => ("busy", 429, "too many of these probes in flight"),
            Self::Refused => ("refused", 502, "nothing listens on the declared port"),
            Self::Overloaded => ("overloaded", 503, "too many probe connections"),
            Self::Timeout => ("timeout", 504, "no response within the timeout"),
            Self::Closed => ("closed", 520, "connection closed without a response"),
            Self::GrpcNotServing => ("grpc_not_serving", 521, "the service is not serving"),
            Self::GrpcUnknown => ("grpc_unknown", 522, "the service's health is unknown"),
            Self::GrpcServiceUnknown => {
                ("grpc_service_unknown", 523, "the server does not know this service")
            }
            Self::GrpcUnimplemented => ("grpc_unimplemented", 524, "the server has no health service"),
            Self::Tls => ("tls", 525, "TLS handshake failed"),
            Self::GrpcError => ("grpc_error", 526, "not a valid health response"),
            Self::Protocol => ("protocol", 527, "not a valid HTTP response"),
            Self::Redirect => ("redirect", 528, "the redirect cannot be followed"),
            Self::Unreachable => ("unreachable", 529, "the pod's address cannot be reached"),
            Self::Configuration => ("configuration", 530, "the proxy is not set up for this probe"),
        }
    }
}

#[cfg(test)]
mod tests;
