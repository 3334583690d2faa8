//! Tests of the binary `app-health-agent` with a real Envoy.

mod basics;
mod descriptors;
mod drain;
mod drain_traffic;
mod exit;
mod expositions;
mod flags;
mod full_disk;
mod local;
mod metrics;
mod run;
mod stages;
