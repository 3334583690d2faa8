//! What discovery decides: configuration objects, the state of each workload entry, the snapshot that
//! Envoys receive, and one ADS stream as state and step.

pub mod connections;
pub mod debounce;
pub mod entries;
pub mod identity;
pub mod limits;
pub mod log_budget;
pub mod message;
pub mod objects;
pub mod snapshot;
pub mod stream;
pub mod view;
pub mod wire;
