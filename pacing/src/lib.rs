//! A rate limiter, an exponential backoff, and limits that treat clients by their source fairly, with
//! time and randomness as arguments. This is a crate of its own because both the pure crates and the
//! binaries use it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod backoff;
mod fair_pool;
mod rate_limiter;
pub mod source;
mod source_limits;
mod source_map;

pub use backoff::{Backoff, exponential};
pub use fair_pool::{FairPool, Full};
pub use rate_limiter::RateLimiter;
pub use source_limits::{Exceeded, SourceLimits};
pub use source_map::SourceMap;
