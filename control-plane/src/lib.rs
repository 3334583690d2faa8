//! `app-health`: what runs in the cluster or on the operator's machine. `inject` rewrites Pods in files, `webhook` does it for the API
//! server; both by the same pure functions.

pub mod args;
pub mod config;
pub mod discovery;
pub mod exit;
pub mod files;
pub mod fuzz;
pub mod inject;
pub mod json;
pub mod monitoring;
pub mod runtime;
pub mod server;
pub mod shutdown;
pub mod tls;
pub mod webhook;
pub mod workloads;
pub mod xds;
pub mod yaml;
