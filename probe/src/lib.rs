//! What a probe is, for everybody who has to agree on it: filter, agent, injector.
//!
//! Pure: values in, values out; no I/O, no clock, no environment. Builds for wasm32 and natively.
//! In reading order: [`path`] and [`prober`] are the vocabulary, [`app_probers`] and [`plugin_config`]
//! read them from JSON, [`request`], [`url`] and [`redirect`] are what kubelet would send, [`grpc_health`]
//! is what it would read, [`reason`] is what we answer. Of virtual machines, where there is no kubelet: [`workload_probe`] and
//! [`workload_group`] are what is configured, read through [`fields`], [`health_state`] is what follows from outcomes, and
//! [`health_report`] is what agent and discovery server tell each other.

#![deny(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod app_probers;
pub mod error;
pub mod grpc_health;
pub mod json;
pub mod path;
pub mod plugin_config;
pub mod ports;
pub mod prober;
pub mod reason;
pub mod redirect;
pub mod request;
pub mod url;

pub use app_probers::AppProbers;
pub use error::ConfigError;
pub use path::{ProbeKind, ProbePath};
pub use plugin_config::{Clusters, PluginConfig};
pub use ports::OwnPorts;
pub use prober::{Grpc, GrpcMode, Handler, Header, HttpGet, Prober, Scheme, TcpSocket};
pub use reason::Reason;
pub use redirect::Redirect;
pub use request::{Request, UserAgent};
