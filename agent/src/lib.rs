//! `app-health-agent`: what runs beside one Envoy. It prints Envoy's bootstrap, says on port 15021 whether Envoy is ready and why not,
//! and holds applications back until then. It probes no application: the filter inside Envoy does.

pub mod address;
pub mod app;
pub mod args;
pub mod bootstrap;
pub mod config;
pub mod envoy;
pub mod envoy_version;
pub mod exit;
pub mod http_client;
pub mod http_server;
pub mod machine;
pub mod output;
pub mod readiness;
pub mod shutdown;
pub mod state_dir;
pub mod wait;
