//! The library of the binary `app-health`, which runs in the cluster or on an operator's machine.
//! `inject` rewrites Pods in files and `webhook` does so on admission, both with the same pure
//! functions; `lint` reports problems of probes; `explain` finds out why Pods are not healthy; `discovery`
//! serves endpoints over xDS and `workloads` prints its state.

pub mod args;
pub mod config;
pub mod discovery;
pub mod exit;
pub mod explain;
pub mod files;
pub mod inject;
pub mod lint;
mod manifests;
pub mod webhook;
pub mod workloads;
