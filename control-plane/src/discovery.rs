//! `app-health discovery`: takes in what agents report, keeps the entries, and serves the endpoints to every Envoy.
//!
//! [`objects`] is what is configured, read by [`config_dir`]; [`entries`] is the pure life of the workloads, [`store`] keeps them, and
//! [`registry`] is the task that owns all three. [`snapshot`] is what Envoys are served, [`stream`] one of them.

pub mod command;
pub mod config_dir;
pub mod metrics;
pub mod pages;
pub mod registry;
pub mod server;
pub mod store;
pub mod tls;
