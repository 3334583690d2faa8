//! Tests of the agent: commands, readiness, metrics, drain and exit codes, with a real Envoy or a scripted
//! admin interface.

mod advice;
mod basics;
mod copy;
mod descriptors;
mod drain;
mod drain_traffic;
mod exit;
mod expositions;
mod filter_form;
mod flags;
mod full_disk;
mod hang;
mod istio_headers;
mod json_log;
mod leftover;
mod local;
mod log_flood;
mod metrics;
mod page;
mod probes;
mod reference;
mod run;
mod signals;
mod sources;
mod stages;
mod version;
