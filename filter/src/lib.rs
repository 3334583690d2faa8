//! A proxy-wasm HTTP filter that answers kubelet's probes inside Envoy: it sends the application
//! the request that kubelet would have sent, and returns the result to kubelet.
//!
//! Reading order: [`prober_plan`] prepares the requests of one prober at configuration time;
//! [`config`] holds the plans of all probers; [`stream`] is the state machine of one HTTP stream;
//! [`decision`] holds its decisions about requests, responses and bodies; [`envoy_error`] derives
//! the reason of a failure from Envoy's response details; [`stats`] names the metrics and decides
//! what is logged. These modules do no I/O. `host` and `abi` call Envoy and are compiled for wasm32
//! only.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

#[cfg(target_arch = "wasm32")]
mod abi;
pub mod attributes;
pub mod config;
pub mod decision;
pub mod encoding;
pub mod envoy_error;
#[cfg(target_arch = "wasm32")]
mod host;
pub mod prober_plan;
pub mod stats;
pub mod stream;
