//! `app-health-agent` runs beside one Envoy. It renders Envoy's bootstrap, starts Envoy, reports on
//! port 15021 whether Envoy is ready, delays applications until then, and drains Envoy. In a Pod it
//! does not probe the application; the filter inside Envoy does. On a virtual machine, where there
//! is no kubelet that starts probes, the agent probes the application itself.
//!
//! This crate contains the commands, their configuration, and what starts the parts; each part is a
//! crate.

pub mod app;
pub mod args;
pub mod cli;
pub mod config;
#[cfg(feature = "vm")]
pub mod istio;
pub mod machine;
pub mod program;
pub mod tasks;
#[cfg(feature = "vm")]
pub mod vm;
pub mod wait;
