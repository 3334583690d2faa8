//! `app-health discovery`: takes in what agents report, keeps the entries, and serves the endpoints to every Envoy.
//!
//! [`objects`] is what is configured, [`entries`] the pure life of the workloads, [`snapshot`] what Envoys are served, [`stream`] one of them.

pub mod debounce;
pub mod entries;
pub mod identity;
pub mod limits;
pub mod message;
pub mod metrics;
pub mod objects;
pub mod registry;
pub mod server;
pub mod snapshot;
pub mod stream;
pub mod tls;
