//! The kinds of handlers that reach the application over the network, with what distinguishes them.
//! A place that handles them one by one matches this enum, so that a new kind does not compile until
//! that place has it.

use HandlerField::{Host, HttpHeaders, Mode, Path, Port, PortNumber, Scheme, Service};

enum_table::table! {
    /// A kind of handler that the filter can send. `ALL` has the order of Kubernetes' types.
    pub enum HandlerKind(
        /// Returns the field of a probe, for example `httpGet`.
        name: &'static str,
        /// Returns the fields of the handler in the order of Kubernetes' types.
        fields: &'static [HandlerField],
        /// Returns the word of `kubectl describe`.
        kubectl_word: &'static str,
        /// Returns true if a lifecycle hook can have the handler in Kubernetes' types.
        is_of_hooks: bool,
        /// Returns the protocol that the application must speak; `None` if a connection is enough.
        protocol: Option<&'static str>,
        /// Returns true if a probe takes more than one round trip, even without TLS.
        has_handshake: bool,
    ) {
        /// The status of a GET decides.
        HttpGet("httpGet", &[Path, Port, Host, Scheme, HttpHeaders], "http-get", true, Some("HTTP"), false),
        /// An established connection is a success.
        TcpSocket("tcpSocket", &[Port, Host], "tcp-socket", true, None, false),
        /// A call of `grpc.health.v1.Health/Check`.
        Grpc("grpc", &[PortNumber, Service, Mode], "grpc", false, Some("gRPC"), true),
    }
}

enum_table::table! {
    /// A field of a handler.
    pub enum HandlerField(
        /// Returns the name of the field.
        name: &'static str,
        /// Returns what an absent or empty text means.
        default_text: &'static str,
        /// Returns true if Kubernetes' types have the field.
        is_in_kubernetes: bool,
    ) {
        /// The path of the request, with a query.
        Path("path", "/", true),
        /// The number of a port, or its name in the container.
        Port("port", "", true),
        /// The number of a port.
        PortNumber("port", "", true),
        /// The host to which kubelet connects instead of to the Pod.
        Host("host", "", true),
        /// `HTTP` or `HTTPS`.
        Scheme("scheme", "HTTP", true),
        /// A list of objects with `name` and `value`.
        HttpHeaders("httpHeaders", "", true),
        /// The name of the service that is checked.
        Service("service", "", true),
        /// `Plaintext` or `TLS` (KEP-4939), which Kubernetes does not have yet.
        Mode("mode", "Plaintext", false),
    }
}

impl HandlerField {
    /// Returns true for the port, which every kind has.
    pub fn is_port(self) -> bool {
        matches!(self, Self::Port | Self::PortNumber)
    }
}

impl HandlerKind {
    /// Returns the fields of Kubernetes' type.
    pub fn kubernetes_fields(self) -> impl Iterator<Item = HandlerField> {
        self.fields().iter().copied().filter(|field| field.is_in_kubernetes())
    }

    /// Returns true if the handler has the field.
    pub fn has(self, field: HandlerField) -> bool {
        self.fields().contains(&field)
    }
}
