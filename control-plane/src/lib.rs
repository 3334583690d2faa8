//! `app-health`: what runs in the cluster or on the operator's machine. `inject` rewrites Pods in files.

pub mod args;
pub mod config;
pub mod exit;
pub mod files;
pub mod inject;
pub mod json;
pub mod yaml;
