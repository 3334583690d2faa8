//! `app-health discovery`: takes in what agents report, keeps the entries, and serves the endpoints to every Envoy.
//!
//! [`objects`] is what is configured, [`entries`] the pure life of the workloads.

pub mod entries;
pub mod objects;
pub mod store;
