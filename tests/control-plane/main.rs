//! Tests of the binary `app-health` as a process, one module per topic.

mod discovery;
mod discovery_certificates;
mod discovery_delta;
mod discovery_frames;
mod discovery_kit;
mod discovery_life;
mod discovery_memory;
mod discovery_slow;
mod inject;
mod webhook;
mod webhook_garbage;
mod webhook_kit;
