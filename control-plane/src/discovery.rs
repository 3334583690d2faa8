//! The discovery server (`app-health discovery`): receives health reports from agents, stores
//! workload entries, and serves their endpoints to Envoys over xDS.
//!
//! [`config_dir`] reads the configuration as [`objects`]; [`entries`] is the state machine of the
//! workload entries; [`store`] persists them; [`registry`] is the task that owns all three.
//! [`snapshot`] holds the resources that Envoys are served, and [`stream`] is the state of one xDS
//! stream.

pub mod command;
pub mod config_dir;
pub mod debug_endpoints;
pub mod metrics;
pub mod registry;
pub mod server;
pub mod store;
pub mod tls;
