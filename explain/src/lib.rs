//! Explains why a Pod is not healthy, or which Pods of a workload are not.
//!
//! All functions are pure. [`requests`] says what to read about a Pod, [`situation`] holds what was
//! read, [`explain`](fn@explain) finds the causes in it, and [`report`] and [`text`] present them.

mod advice;
mod causes;
mod clock;
mod container;
mod destination;
mod event;
pub mod explanation;
mod finding;
mod injection;
mod metrics;
pub mod object;
mod probes;
pub mod report;
pub mod requests;
pub mod selector;
mod sidecar;
pub mod situation;
pub mod text;
mod view;
mod windows;
mod wording;
mod workload;

pub use explanation::{Explanation, Verdict, explain};
pub use finding::{Code, Finding, Severity};
pub use workload::WorkloadSituation;

#[cfg(test)]
mod tests;
