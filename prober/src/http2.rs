//! HTTP/2 with Go's rules: [`get`] is a request of kubelet's `httpGet` prober, and [`grpc`] one of its `grpc`
//! prober.

mod connection;
mod frame;
#[cfg(feature = "tls")]
pub(crate) mod get;
pub(crate) mod grpc;
mod hpack;
mod huffman;
#[cfg(test)]
mod script;
mod static_table;
