//! `app-health`: what runs in the cluster or on the operator's machine. `inject` rewrites Pods in files, `webhook` does it for the API
//! server; both by the same pure functions.

pub mod args;
pub mod config;
pub mod discovery;
pub mod files;
pub mod inject;
pub mod webhook;
pub mod workloads;
