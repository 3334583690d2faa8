//! The wasm form of the filter: proxy-wasm contexts around the state machine.

#[cfg(target_arch = "wasm32")]
mod contexts;
#[cfg(target_arch = "wasm32")]
mod envoy;
mod filter_state;
#[cfg(target_arch = "wasm32")]
mod local_reply;
mod text;
