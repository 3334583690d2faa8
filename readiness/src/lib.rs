//! Whether Envoy is ready, and why not: what Envoy's admin interface and probe listener respond goes
//! in, a snapshot comes out.

pub mod admin;
pub mod listeners;
pub mod process_history;
mod readiness;

pub use readiness::*;
