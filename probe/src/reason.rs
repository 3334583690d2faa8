//! Why a probe got its answer: the word, the status and the text. An interface: users see the status in
//! `kubectl describe`, the word in metrics and logs; changes need a changelog entry.

/// Why a probe was answered as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The application answered 200-299, accepted the connection, or is SERVING.
    Ok,
    /// A final 3xx: kubelet counts it as success, with a warning event.
    OkRedirect,
    /// The application answered 400-599.
    Application,
    /// The probe's request has a body.
    BadRequest,
    /// The path is in no prober table.
    UnknownProbe,
    /// The probe's request is not a GET.
    Method,
    /// Too many of the same probe are in flight.
    Busy,
    /// Nothing listens on the declared port.
    Refused,
    /// Envoy's own limits on probe connections are reached.
    Overloaded,
    /// No answer within the declared timeout.
    Timeout,
    /// The application closed or reset the connection before its headers were complete.
    Closed,
    /// gRPC health: NOT_SERVING.
    GrpcNotServing,
    /// gRPC health: UNKNOWN, an empty message or a number that nobody knows.
    GrpcUnknown,
    /// gRPC health: the server does not know the service.
    GrpcServiceUnknown,
    /// The server has no gRPC health service.
    GrpcUnimplemented,
    /// The TLS handshake failed.
    Tls,
    /// The answer is no gRPC health answer.
    GrpcError,
    /// The answer is no HTTP answer.
    Protocol,
    /// The redirect cannot be followed.
    Redirect,
    /// The pod's address cannot be reached.
    Unreachable,
    /// The proxy lacks a cluster, a route or a function that this probe needs.
    Configuration,
}

impl Reason {
    /// Every reason, in the order of the status table.
    pub const ALL: [Self; 21] = [
        Self::Ok,
        Self::OkRedirect,
        Self::Application,
        Self::BadRequest,
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

    /// The word in answers, metrics and logs.
    pub fn word(self) -> &'static str {
        self.row().0
    }

    /// The status that kubelet sees where the answer is ours; for [`Reason::Application`] the application's
    /// own status takes its place.
    pub fn status(self) -> u16 {
        self.row().1
    }

    /// What went wrong, in one line, without a byte of the application or the caller; empty for success.
    pub fn text(self) -> &'static str {
        self.row().2
    }

    /// Whether kubelet counts the probe as passed.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Ok | Self::OkRedirect)
    }

    /// Whether the caller alone is to blame: such an answer says nothing about the application.
    pub fn is_callers(self) -> bool {
        matches!(self, Self::BadRequest | Self::UnknownProbe | Self::Method)
    }

    /// The body of the answer: `<word>: <text>`, or nothing where there is no text.
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
            Self::BadRequest => ("bad_request", 400, "a probe has no body"),
            Self::UnknownProbe => ("unknown_probe", 404, "no such probe is declared"),
            Self::Method => ("method", 405, "only GET"),
            Self::Busy => ("busy", 429, "too many of this probe at once"),
            Self::Refused => ("refused", 502, "nothing listens on the declared port"),
            Self::Overloaded => ("overloaded", 503, "too many probe connections"),
            Self::Timeout => ("timeout", 504, "no answer within the timeout"),
            Self::Closed => ("closed", 520, "connection closed without an answer"),
            Self::GrpcNotServing => ("grpc_not_serving", 521, "the service is not serving"),
            Self::GrpcUnknown => ("grpc_unknown", 522, "the service's health is unknown"),
            Self::GrpcServiceUnknown => {
                ("grpc_service_unknown", 523, "the server does not know this service")
            }
            Self::GrpcUnimplemented => ("grpc_unimplemented", 524, "the server has no health service"),
            Self::Tls => ("tls", 525, "TLS handshake failed"),
            Self::GrpcError => ("grpc_error", 526, "not a valid health answer"),
            Self::Protocol => ("protocol", 527, "not a valid HTTP answer"),
            Self::Redirect => ("redirect", 528, "the redirect cannot be followed"),
            Self::Unreachable => ("unreachable", 529, "the pod's address cannot be reached"),
            Self::Configuration => ("configuration", 530, "the proxy is not set up for this probe"),
        }
    }
}

#[cfg(test)]
mod tests;
