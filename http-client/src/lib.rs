//! HTTP/1.1 client with limits, and the requests to Envoy's admin interface.

pub mod admin_client;
mod http_client;

pub use http_client::*;
