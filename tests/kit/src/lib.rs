//! The test harness: real and scripted counterparts of the components under test.

pub mod admin;
pub mod agent;
pub mod app;
pub mod application;
pub mod authority;
pub mod caller;
pub mod container_tools;
pub mod docker;
pub mod envoy;
pub mod example;
pub mod launcher;
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
pub mod reserved_port;
pub mod sidecar;
pub mod terminal;
pub mod vm;
pub mod wait;
