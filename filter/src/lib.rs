//! The filter: answers kubelet's probes inside Envoy by asking the application as kubelet would have.
//!
//! In reading order: [`plan`] is what a prober becomes at configuration time, [`config`] is all of them,
//! [`decision`] says what to do with a request, an answer, a chunk; [`cause`] reads from Envoy's own words who
//! made an answer; [`ledger`] is what metrics and logs are told. All that is pure. `host` and `abi` are the rim:
//! they exist in the wasm build only, and hold no decision.

#![deny(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

#[cfg(target_arch = "wasm32")]
mod abi;
pub mod cause;
pub mod config;
pub mod decision;
#[cfg(target_arch = "wasm32")]
mod host;
pub mod ledger;
pub mod plan;
pub mod wire;
