//! The results of a Kubernetes probe with their words, statuses and texts.
//!
//! They are public interfaces: users see the status in `kubectl describe`, and the word in metrics
//! and logs. A change needs an entry in the changelog.

enum_table::table! {
    /// The result of a probe.
    #[derive(PartialOrd, Ord)]
    pub enum Reason(
        /// Returns the word for responses, metrics and logs.
        word: &'static str,
        /// Returns the HTTP status that kubelet receives. For [`Reason::Application`], the
        /// application's own status is sent instead.
        status: u16,
        /// Returns a description in one line, empty for a success. It contains nothing that the
        /// application or the client sent.
        text: &'static str,
    ) {
        /// The application responded with 200 to 299, accepted the connection, or is SERVING.
        Ok("ok", 200, ""),
        /// The response is a 3xx that is not followed; kubelet treats it as success with a warning
        /// event.
        OkRedirect("ok_redirect", 200, ""),
        /// The application responded with 400 to 599.
        Application("application", 500, ""),
        /// The probe's request has a body.
        BadRequest("bad_request", 400, "a probe must not have a body"),
        /// The client may not call lifecycle hooks.
        Forbidden("forbidden", 403, "the client may not call hooks"),
        /// The path is not declared in the probers.
        UnknownProbe("unknown_probe", 404, "no such probe is declared"),
        /// The probe's request is not a GET.
        Method("method", 405, "only GET is allowed"),
        /// Too many probes of the same prober are in flight.
        Busy("busy", 429, "too many of these probes in flight"),
        /// The connection to the declared port was refused.
        Refused("refused", 502, "nothing listens on the declared port"),
        /// Envoy's limit on probe connections is reached.
        Overloaded("overloaded", 503, "too many probe connections"),
        /// The application did not respond within the declared timeout.
        Timeout("timeout", 504, "no response within the timeout"),
        /// The application closed or reset the connection before it had sent all headers.
        Closed("closed", 520, "connection closed without a response"),
        /// The gRPC health status is NOT_SERVING.
        GrpcNotServing("grpc_not_serving", 521, "the service is not serving"),
        /// The gRPC health status is UNKNOWN, missing, or a number that the protocol does not define.
        GrpcUnknown("grpc_unknown", 522, "the service's health is unknown"),
        /// The gRPC server does not know the service.
        GrpcServiceUnknown("grpc_service_unknown", 523, "the server does not know this service"),
        /// The gRPC server does not implement the health service.
        GrpcUnimplemented("grpc_unimplemented", 524, "the server has no health service"),
        /// The TLS handshake failed.
        Tls("tls", 525, "TLS handshake failed"),
        /// The response is not a valid gRPC health response.
        GrpcError("grpc_error", 526, "not a valid health response"),
        /// The response is not a valid HTTP response.
        Protocol("protocol", 527, "not a valid HTTP response"),
        /// The redirect cannot be followed.
        Redirect("redirect", 528, "the redirect cannot be followed"),
        /// The Pod's address cannot be reached.
        Unreachable("unreachable", 529, "the pod's address cannot be reached"),
        /// Envoy lacks a cluster, a route or a foreign function that the probe needs.
        Configuration("configuration", 530, "the proxy is not set up for this probe"),
    }
}

impl Reason {
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
        match self.text() {
            "" => String::new(),
            text => format!("{}: {text}", self.word()),
        }
    }
}

#[cfg(test)]
mod tests;
