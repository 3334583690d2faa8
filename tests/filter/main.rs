//! Tests of the shipped wasm file in a proxy-wasm host on wasmtime: callbacks in any order, failing host
//! calls, limits of memory and size.

mod callback_order;
mod config;
mod faults;
mod grpc;
mod limits;
mod metrics;
mod random_callback_order;
mod redirects;
mod requests;
mod responses;
mod size;
mod support;
mod wasm_host;
