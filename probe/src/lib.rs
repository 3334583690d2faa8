//! The definition of probes that filter, agent and injector share.
//!
//! All functions are pure: no I/O, no clock, no environment. The crate builds natively and for
//! wasm32.
//!
//! [`path`], [`handler_kind`] and [`prober`] define the types; [`app_probers`] and
//! [`plugin_config`] read them from JSON; [`request`], [`url`] and [`redirect`] compute what
//! kubelet would send; [`ports`] lists the proxy's ports, which no probe may target;
//! [`grpc_health`] encodes and decodes gRPC health checks; [`reason`] lists the results;
//! [`metrics`] and [`log_line`] say how results are recorded; [`permits`] limits the probes in flight.

#![deny(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod app_probers;
pub mod go;
pub mod grpc_health;
pub mod handler_kind;
pub mod json;
pub mod log_line;
pub mod metrics;
pub mod path;
pub mod permits;
pub mod plugin_config;
pub mod ports;
pub mod prober;
pub mod reason;
pub mod redirect;
pub mod request;
pub mod scheme;
pub mod url;
pub mod user_agent;

pub use app_probers::AppProbers;
pub use handler_kind::{HandlerField, HandlerKind};
pub use json::ConfigError;
pub use path::{ProbeKind, ProbePath};
pub use plugin_config::{Clusters, HookCallers, PluginConfig};
pub use ports::ProxyPorts;
pub use prober::{Grpc, GrpcMode, Handler, Header, HttpGet, Prober, TcpSocket};
pub use reason::Reason;
pub use redirect::Redirect;
pub use request::{Connection, Request, UserAgent};
pub use scheme::Scheme;
