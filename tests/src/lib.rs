//! The harness of the tests, as a library: what is real and what is scripted.

pub mod agent;
pub mod app;
pub mod caller;
pub mod demo;
pub mod envoy;
pub mod example;
pub mod host;
pub mod net;
pub mod pod;
pub mod transcript;
