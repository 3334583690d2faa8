//! Tests of the agent as a process, mostly with a real Envoy.

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
mod reference;
mod run;
mod stages;
