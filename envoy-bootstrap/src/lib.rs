//! The bootstrap that the agent renders for Envoy, and the form of the filter in it.

pub mod bootstrap;
pub mod declared_probe;
pub mod envoy_version;
pub mod filter_choice;
