//! TODO

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
