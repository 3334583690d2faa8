//! The discovery server: receives health reports from agents, stores workload entries, and serves their
//! endpoints to Envoys over xDS.
//!
//! The decisions are in the crate `discovery`. Here, [`config_dir`] reads the configuration, [`store`]
//! persists the workload entries, [`registry`] is the task that owns them, and [`server`] holds the
//! xDS streams. [`page`] shows them to an operator.

pub mod config_dir;
pub mod debug_endpoints;
pub mod metrics;
pub mod page;
pub mod registry;
pub mod server;
pub mod store;
pub mod tls;
