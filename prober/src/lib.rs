//! Sends a probe to an application as kubelet does, and tells how it ended.
//!
//! kubelet's verdict depends on what its Go libraries accept as a response. So the rules of these are
//! implemented here: `http1` has those of Go's `net/http` for HTTP/1.1, and `http2` those of its HTTP/2 client
//! and of grpc-go. `dial` opens connections; `tcp_socket`, `http_get` and `grpc_check` are the three kinds of
//! probes, each within its timeout; `ended` defines the result. `connected` has the requests without these
//! kinds, for the probes of virtual machines.

pub mod connected;
mod dial;
mod ended;
mod exchange;
mod grpc_check;
mod http1;
mod http2;
mod http_get;
mod response;
mod stream;
mod tcp_socket;
#[cfg(feature = "tls")]
mod tls;

pub use dial::Target;
pub use ended::Ended;
pub use exchange::Client;
pub use grpc_check::grpc_check;
pub use http_get::{HttpProbe, http_get};
pub use tcp_socket::tcp_socket;
#[cfg(feature = "tls")]
pub use tls::connector as unverified_tls;
