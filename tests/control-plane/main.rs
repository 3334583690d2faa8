//! Tests of the binary `app-health` as a process, one module per topic.

mod chart;
mod discovery;
mod discovery_certificates;
mod discovery_delta;
mod discovery_frames;
mod discovery_limits;
mod discovery_memory;
mod discovery_process;
mod discovery_support;
mod explain;
mod explain_sidecar;
mod explain_support;
mod failed_mount;
mod inject;
mod lint;
mod mass_silence;
mod monitoring;
mod page;
mod slow_readers;
mod version;
mod webhook;
mod webhook_cert_manager;
mod webhook_invalid_requests;
mod webhook_limits;
mod webhook_support;
