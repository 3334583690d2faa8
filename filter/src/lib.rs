//! A proxy-wasm HTTP filter that answers kubelet's probes inside Envoy: it sends the application
//! the request that kubelet would have sent, and returns the result to kubelet.
//!
//! The filter has two forms around one state machine: this crate is the wasm form, and the crate
//! `filter-native` is a dynamic module of Envoy.
//!
//! Reading order: [`prober_plan`] prepares the requests of one prober at configuration time;
//! [`config`] holds the plans of all probers; [`stream`] is the state machine of one HTTP stream;
//! [`decision`] holds its decisions about requests, responses and bodies; [`envoy_error`] derives
//! the reason of a failure from Envoy's response details; [`effects`] carries out a decision, by calls of
//! a [`host`]; [`metrics`] records results; [`stats`] decides what is logged; [`permits`] limits the
//! probes in flight. These modules do no I/O.
//! `wasm` calls Envoy and is compiled for wasm32 only.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod attributes;
pub mod config;
pub mod decision;
pub mod effects;
pub mod envoy_error;
pub mod host;
pub mod metrics;
pub mod permits;
pub mod prober_plan;
pub mod recorder;
pub mod stats;
pub mod stream;
#[cfg(any(target_arch = "wasm32", test))]
mod wasm;
