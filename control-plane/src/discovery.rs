//! `app-health discovery`: takes in what agents report, keeps the entries, and serves the endpoints to every Envoy.
//!
//! [`objects`] is what is configured, read by [`config_dir`]; [`entries`] is the pure life of the workloads, [`store`] keeps them.

pub mod config_dir;
pub mod entries;
pub mod objects;
pub mod store;
