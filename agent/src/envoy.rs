//! The Envoy process and its admin interface.

pub mod admin;
pub mod admin_client;
pub mod listeners;
pub mod log_forwarder;
pub mod one_shot;
pub mod process;
