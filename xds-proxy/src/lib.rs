//! The state machine of an xDS proxy between one Envoy and its control plane, and the last good
//! configuration that the proxy serves while no control plane answers. It is pure: events go in,
//! effects come out, and time and randomness are arguments.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod last_good;
mod names;
pub mod proxy;
mod type_state;

pub use last_good::{CacheError, LastGood};
pub use proxy::{
    Effect, Event, HealthEvent, Input, OwnResource, Proxy, ProxySettings, ProxyView, TypeView, Write,
};
