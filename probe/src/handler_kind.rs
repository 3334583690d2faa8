//! The kinds of handlers that reach the application over the network. Every place that handles them
//! one by one matches this enum, so that a new kind does not compile until each place has it.

enum_table::table! {
    /// A kind of handler that the filter can send. `ALL` has the order of Kubernetes' types.
    pub enum HandlerKind(
        /// Returns the field of a probe, for example `httpGet`.
        name: &'static str,
        /// Returns the fields of the handler in Kubernetes' types.
        fields: &'static [&'static str],
    ) {
        /// The status of a GET decides.
        HttpGet("httpGet", &["path", "port", "host", "scheme", "httpHeaders"]),
        /// An established connection is a success.
        TcpSocket("tcpSocket", &["port", "host"]),
        /// A call of `grpc.health.v1.Health/Check`.
        Grpc("grpc", &["port", "service"]),
    }
}
