//! Tests of the shipped wasm file in a proxy-wasm host on wasmtime: callbacks in any order, failing host
//! calls, limits of memory and size.

mod answers;
mod config;
mod faults;
mod grpc;
mod kit;
mod limits;
mod metrics;
mod orders;
mod random;
mod redirects;
mod requests;
mod size;
mod wasm_host;
