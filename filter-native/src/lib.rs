//! The filter as a dynamic module of Envoy (`envoy.filters.http.dynamic_modules`): the same state
//! machine as the wasm form in the crate `filter`, in Envoy's own process and without a WebAssembly
//! runtime.
//!
//! Reading order: `abi` declares the part of Envoy's ABI that the module uses; `hooks` has the
//! functions that Envoy calls; `module_config` is a configuration with its metrics; `worker` is
//! the state of one of Envoy's threads; `stream` is one HTTP stream; `envoy` acts on Envoy for it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod abi;
mod callout;
mod envoy;
mod header_edits;
mod hooks;
mod metrics;
mod module_config;
mod stream;
mod worker;
