//! The kinds of handlers that reach the application over the network. Every place that handles them
//! one by one matches this enum, so that a new kind does not compile until each place has it.

/// Declares the kinds with their names and fields.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $name:literal [$($field:literal),+];)+) => {
        /// A kind of handler that the filter can send.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum HandlerKind {
            $($(#[$doc])+ $kind,)+
        }

        impl HandlerKind {
            /// All kinds, in the order of Kubernetes' types.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// Returns the field of a probe, for example `httpGet`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// Returns the fields of the handler in Kubernetes' types.
            pub fn fields(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => &[$($field),+],)+
                }
            }
        }
    };
}

kinds! {
    /// The status of a GET decides.
    HttpGet = "httpGet" ["path", "port", "host", "scheme", "httpHeaders"];
    /// An established connection is a success.
    TcpSocket = "tcpSocket" ["port", "host"];
    /// A call of `grpc.health.v1.Health/Check`.
    Grpc = "grpc" ["port", "service"];
}
