//! The binary `app-health` from outside: a module for each thing that is tested.

mod discovery;
mod discovery_kit;
mod inject;
mod webhook;
mod webhook_garbage;
mod webhook_kit;
