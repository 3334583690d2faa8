//! The harness of the tests, as a library: what is real and what is scripted.

pub mod admin;
pub mod agent;
pub mod app;
pub mod caller;
pub mod conformance;
pub mod demo;
pub mod demo_vm;
pub mod docker;
pub mod envoy;
pub mod example;
pub mod host;
pub mod load;
pub mod net;
pub mod not_tested;
pub mod oracle;
pub mod plain;
pub mod plain_server;
pub mod pod;
pub mod process;
pub mod promtool;
pub mod report;
pub mod sidecar;
pub mod stress;
pub mod transcript;
pub mod vm;
