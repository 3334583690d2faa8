//! Answers kubelet's probes in the agent, by probing the application.
//!
//! `declared` holds the declared probes; `probe_server` answers a request; `results` records each
//! result in metrics and log; `clients` says who may connect.

mod clients;
mod declared;
mod probe_metrics;
mod probe_server;
mod results;

pub use clients::ProbeClients;
pub use declared::{DeclaredProbes, Unsupported};
pub use probe_server::ProbeServer;
