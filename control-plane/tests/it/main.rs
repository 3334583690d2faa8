//! The binary `app-health` from outside: a module for each thing that is tested.

mod discovery;
mod discovery_frames;
mod discovery_kit;
mod discovery_slow;
mod inject;
mod webhook;
mod webhook_garbage;
mod webhook_kit;
